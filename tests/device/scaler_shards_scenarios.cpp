// Scenarios of the loss scaler of a GPU over shards: graphs, resumption on other ranks, ranks that
// differ, calls that are refused.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/scaler_shards.hpp"
#include "samebits/testkit/ranks.hpp"
#include "support/effort.hpp"
#include "support/refusal.hpp"

namespace samebits::support {
namespace {

using support::refusal_of;

/// Scalers of all ranks in one thread.
struct fleet {
  std::vector<std::unique_ptr<device_loss_scaler>> scalers;

  void step(const lockstep_ranks& ranks, const device_streams& streams) const {
    const int n = static_cast<int>(scalers.size());
    for (int r = 0; r < n; ++r) scalers[static_cast<std::size_t>(r)]->inspect(streams.stream(r));
    for (int r = 0; r < n; ++r) scalers[static_cast<std::size_t>(r)]->agree(ranks[r]);
    for (int r = 0; r < n; ++r) scalers[static_cast<std::size_t>(r)]->decide(streams.stream(r));
  }
};

TEST_P(ScalerShards, ReplaysOfOneGraphAreTheStepsOfAllRanks) {
  engine random(17);
  for (const int n : {1, 3}) {
    const spread_list list = random_list(few_sizes, n, random);
    spread_values values(list);
    std::vector<std::unique_ptr<device_shards>> shards;
    std::vector<std::optional<shard_layout>> layouts(static_cast<std::size_t>(n));
    for (int r = 0; r < n; ++r) {
      shards.push_back(std::make_unique<device_shards>(values.shards(r)));
    }
    testkit::simulate_ranks(n, [&](communicator& ranks) {
      const auto r = static_cast<std::size_t>(ranks.rank());
      layouts[r].emplace(ranks, shards[r]->listed(), values.first(ranks.rank()));
    });
    const native_scaling settings = {.growth_interval = 20, .recovery_interval = 5};
    fleet eager, replayed;
    for (std::size_t r = 0; r < static_cast<std::size_t>(n); ++r) {
      for (fleet* f : {&eager, &replayed}) {
        f->scalers.push_back(std::make_unique<device_loss_scaler>(shards[r]->listed(), settings,
                                                                  options(0x1p-12, layouts[r])));
      }
    }
    lockstep_ranks ranks(streams_, n);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    check_cuda(cudaStreamBeginCapture(streams_.stream(0), cudaStreamCaptureModeRelaxed), "begin");
    streams_.mark(0, true);
    for (int r = 1; r < n; ++r) streams_.wait_for_all(r, 1, true);
    replayed.step(ranks, streams_);
    for (int r = 1; r < n; ++r) streams_.mark(r, true);
    streams_.wait_for_all(0, n, true);
    check_cuda(cudaStreamEndCapture(streams_.stream(0), &graph), "end");
    std::size_t nodes = 0;
    check_cuda(cudaGraphGetNodes(graph, nullptr, &nodes), "nodes");
    EXPECT_EQ(nodes, static_cast<std::size_t>(3 * n + n * n));  // three launches, and the exchange
    check_cuda(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
    engine value_engine(4);
    int skipped = 0;
    for (int i = 0; i < by_effort(100, 10); ++i) {
      values.draw(value_engine, static_cast<double>(downloaded(eager.scalers[0]->scale())));
      for (const auto& s : shards) s->upload();
      eager.step(ranks, streams_);
      streams_.synchronize();
      check_cuda(cudaGraphLaunch(exec, streams_.stream(0)), "replay");
      streams_.synchronize();
      for (std::size_t r = 0; r < static_cast<std::size_t>(n); ++r) {
        const auto expected = eager.scalers[r]->poll();
        const auto got = replayed.scalers[r]->poll();
        ASSERT_TRUE(expected.has_value() && got.has_value());
        ASSERT_EQ(fields(*got), fields(*expected)) << "rank " << r << ", step " << i;
        skipped += r == 0 && !got->applied ? 1 : 0;
      }
    }
    if (!smallest_effort()) {
      EXPECT_GT(skipped, 1);
      EXPECT_LT(skipped, 60);
    }
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
  }
}

TEST_P(ScalerShards, ARunSavedOnThreeRanksGoesOnWithEight) {
  engine random(18);
  const native_scaling settings = {.growth_interval = 6, .recovery_interval = 3};
  // The list of n ranks, from the same values.
  const auto run = [&](int n, int from, int to, const std::string& saved) {
    const spread_list list = random_list(few_sizes, n, random);
    std::vector<std::string> texts(static_cast<std::size_t>(n));
    std::vector<report_fields> reports;
    simulate_device_ranks(streams_, n, [&](communicator& ranks) {
      spread_values values(list);
      const device_shards mine(values.shards(ranks.rank()));
      const auto how =
          options(0x1p-12, shard_layout(ranks, mine.listed(), values.first(ranks.rank())));
      std::optional<device_loss_scaler> scaler;
      if (saved.empty()) {
        scaler.emplace(mine.listed(), settings, how);
      } else {
        scaler.emplace(mine.listed(), loss_scaler::load(saved), how);
      }
      for (int i = from; i < to; ++i) {
        engine value_engine(100 + static_cast<std::uint64_t>(i));
        values.draw(value_engine, 1);
        mine.upload();
        const step_report r = stepped(*scaler, ranks);
        if (ranks.rank() == 0) reports.push_back(without_rank(r));
      }
      texts[static_cast<std::size_t>(ranks.rank())] = scaler->save(ranks.stream());
    });
    for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
    return std::pair(texts[0], reports);
  };
  const auto [whole_text, whole] = run(2, 0, 24, "");
  auto [text, reports] = run(3, 0, 11, "");
  const auto [last_text, rest] = run(8, 11, 24, text);
  reports.insert(reports.end(), rest.begin(), rest.end());
  EXPECT_EQ(reports, whole);
  EXPECT_EQ(last_text, whole_text);
}

TEST_P(ScalerShards, RanksThatClipByOtherNormsSkipAndStop) {
  engine random(19);
  const spread_list list = random_list(few_sizes, 3, random);
  const auto differ = [&](const native_scaling& other, double max_norm) {
    std::vector<int> count(3);
    simulate_device_ranks(streams_, 3, [&](communicator& ranks) {
      spread_values values(list);
      engine value_engine(5);
      values.draw(value_engine, 1);
      const device_shards mine(values.shards(ranks.rank()));
      const bool last = ranks.rank() == 2;
      device_loss_scaler scaler(
          mine.listed(), last ? other : native_scaling{},
          options(last ? max_norm : 1.0,
                  shard_layout(ranks, mine.listed(), values.first(ranks.rank()))));
      const step_report r = stepped(scaler, ranks);
      if (r.cause != step_cause::ranks_differ) return;
      count[static_cast<std::size_t>(ranks.rank())] = 1;
      EXPECT_TRUE(r.stop);
      EXPECT_FALSE(r.applied);
      EXPECT_EQ(r.grad_mul, 0.0f);
    });
    return count[0] + count[1] + count[2];
  };
  EXPECT_EQ(differ({}, 1.0), 0);
  EXPECT_EQ(differ({}, 2.0), 3);
  EXPECT_EQ(differ({}, inf), 3);
  EXPECT_EQ(differ({.hysteresis = 3}, 1.0), 3);
}

TEST_P(ScalerShards, Refuses) {
  spread_values values({spread_tensor{format_id::fp16, {0, 8}, 0}});
  spread_values others({spread_tensor{format_id::fp16, {0, 9}, 0}});
  const device_shards mine(values.shards(0)), other(others.shards(0));
  single_rank one;
  const shard_layout layout(one, mine.listed(), values.first(0));
  device_loss_scaler scaler(mine.listed(), native_scaling{}, options(1.0, layout));
  EXPECT_THROW(scaler.step(nullptr), call_order_error);
  EXPECT_THROW(scaler.decide(nullptr), call_order_error);
  EXPECT_EQ(refusal_of([&] {
              device_loss_scaler s(other.listed(), native_scaling{}, options(1.0, layout));
            }),
            "options.shards: holds 8 elements of gradients[0], which has 9");
  EXPECT_EQ(refusal_of([&] {
              device_loss_scaler s(tensor_list(), native_scaling{}, options(1.0, layout));
            }),
            "options.shards: is of 1 tensors, gradients are 0");
  EXPECT_THROW(scaler.agree(one), invalid_argument);  // on host memory
  const lockstep_ranks two(streams_, 2);
  EXPECT_EQ(refusal_of([&] { scaler.agree(two[0]); }),
            "ranks: is rank 0 of 2, options.shards were laid out for rank 0 of 1");
}

}  // namespace
}  // namespace samebits::support
