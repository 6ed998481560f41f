// The loss scaler of a GPU over ranks, with whole tensors and with shards: graphs, resumption on other
// ranks, ranks that differ, refusals. Every report and factor, and what one rank's elements and losses
// decide for all: device.property_shardedlossscaler and device.property_largeshards.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/scaler_gradients.hpp"
#include "samebits/samebits.hpp"
#include "samebits/testkit/ranks.hpp"
#include "support/effort.hpp"
#include "support/refusal.hpp"

namespace samebits::support {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// Gradients on each rank: shards of one list, or a whole list of its own or the same one.
enum class spread : std::uint8_t { sharded, own, same };

class ScalerShards : public ScalerTest {
 protected:
  static scenario_tensors drawn(int ranks, std::uint64_t seed) {
    std::mt19937_64 engine(seed);
    return few_tensors(ranks, [&engine] { return engine(); });
  }
  /// Takes a step of gradients that are there.
  static step_report stepped(device_loss_scaler& scaler, communicator& ranks) {
    scaler.step(ranks);
    check_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(ranks.stream())), "step");
    return polled(scaler);
  }
  void on_ranks(int count, const std::function<void(communicator&)>& body) const {
    simulate_device_ranks(streams_, count, body);
  }
};

/// Scalers of all ranks, on gradients of each rank's own; of shards all the same.
struct fleet {
  std::vector<std::unique_ptr<spread_gradients>> gradients;
  std::vector<std::unique_ptr<device_loss_scaler>> scalers;

  void draw(double scale) const {
    for (const auto& g : gradients) g->draw(scale);
  }
  void step(const device_streams& streams) const {
    enqueue_on_ranks(streams, static_cast<int>(scalers.size()), [&](communicator& ranks) {
      scalers[static_cast<std::size_t>(ranks.rank())]->step(ranks);
    });
  }
};

TEST_P(ScalerShards, ReplaysOfOneGraphAreTheStepsOfAllRanks) {
  const native_scaling settings = {.growth_interval = 20, .recovery_interval = 5};
  for (const auto& [n, how] :
       {std::pair{1, spread::sharded}, {3, spread::sharded}, {4, spread::own}}) {
    const bool sharded = how == spread::sharded;
    const scenario_tensors tensors = drawn(sharded ? n : 1, 17);
    const auto made = [&, n = n] {
      fleet f;
      for (int r = 0; r < n; ++r) {
        const auto seed = static_cast<std::uint64_t>(sharded ? 4 : 100 + r);
        f.gradients.push_back(std::make_unique<spread_gradients>(tensors, seed));
      }
      std::vector<std::optional<shard_layout>> layouts(static_cast<std::size_t>(n));
      testkit::simulate_ranks(n, [&](communicator& ranks) {
        const auto r = static_cast<std::size_t>(ranks.rank());
        if (sharded) layouts[r].emplace(f.gradients[r]->layout(ranks));
      });
      for (int r = 0; r < n; ++r) {
        const auto i = static_cast<std::size_t>(r);
        f.scalers.push_back(
            std::make_unique<device_loss_scaler>(f.gradients[i]->shards(sharded ? r : 0), settings,
                                                 options(sharded ? 0x1p-12 : inf, layouts[i])));
      }
      return f;
    };
    const fleet eager = made(), replayed = made();
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    check_cuda(cudaStreamBeginCapture(streams_.stream(0), cudaStreamCaptureModeRelaxed), "begin");
    streams_.mark(0, true);
    for (int r = 1; r < n; ++r) streams_.wait_for_all(r, 1, true);
    replayed.step(streams_);
    for (int r = 1; r < n; ++r) streams_.mark(r, true);
    streams_.wait_for_all(0, n, true);
    check_cuda(cudaStreamEndCapture(streams_.stream(0), &graph), "end");
    std::size_t nodes = 0;
    check_cuda(cudaGraphGetNodes(graph, nullptr, &nodes), "nodes");
    if (sharded) {  // three launches, and the exchange
      EXPECT_EQ(nodes, static_cast<std::size_t>(3 * n + n * n));
    }
    check_cuda(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
    int skipped = 0;
    for (int i = 0; i < by_effort(sharded ? 100 : 200, sharded ? 10 : 20); ++i) {
      const auto scale = static_cast<double>(downloaded(eager.scalers[0]->scale()));
      eager.draw(scale);
      replayed.draw(scale);
      eager.step(streams_);
      streams_.synchronize();
      check_cuda(cudaGraphLaunch(exec, streams_.stream(0)), "replay");
      streams_.synchronize();
      for (std::size_t r = 0; r < eager.scalers.size(); ++r) {
        const step_report got = polled(*replayed.scalers[r]);
        ASSERT_EQ(fields(got), fields(polled(*eager.scalers[r]))) << "rank " << r << ", step " << i;
        skipped += r == 0 && !got.applied ? 1 : 0;
      }
    }
    if (!smallest_effort()) {
      EXPECT_GT(skipped, sharded ? 1 : 10);
      EXPECT_LT(skipped, sharded ? 60 : 200);
    }
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
  }
}

TEST_P(ScalerShards, ARunSavedOnThreeRanksGoesOnWithEight) {
  const native_scaling settings = {.growth_interval = 6, .recovery_interval = 3};
  // The list of n ranks, from the same values.
  const auto run = [&](int n, int from, int to, const std::string& saved) {
    const scenario_tensors tensors = drawn(n, 18 + static_cast<std::uint64_t>(n));
    std::vector<std::string> texts(static_cast<std::size_t>(n));
    std::vector<returned_values> reports;
    on_ranks(n, [&](communicator& ranks) {
      spread_gradients g(tensors, 100);
      for (int i = 0; i < from; ++i) g.draw(1);
      const tensor_list mine = g.shards(ranks.rank());
      const device_scaler_options how = options(0x1p-12, g.layout(ranks));
      std::optional<device_loss_scaler> scaler;
      if (saved.empty()) {
        scaler.emplace(mine, settings, how);
      } else {
        scaler.emplace(mine, loss_scaler::load(saved), how);
      }
      for (int i = from; i < to; ++i) {
        g.draw(1);
        step_report r = stepped(*scaler, ranks);
        r.bad_rank = -1;  // depends on the number of ranks
        if (ranks.rank() == 0) reports.push_back(fields(r));
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

/// Other settings or norms of one rank, and norms of shards as that of the whole.
TEST_P(ScalerShards, ScalersThatDifferSkipAndStopOnEveryRank) {
  const auto differ = [&](spread how, double max_norm, const native_scaling& other,
                          double other_norm) {
    const bool sharded = how == spread::sharded;
    const scenario_tensors tensors = drawn(sharded ? 3 : 1, 19);
    std::vector<int> count(3);
    on_ranks(3, [&](communicator& ranks) {
      const int rank = ranks.rank();
      spread_gradients g(tensors, how == spread::own ? 100 + static_cast<std::uint64_t>(rank) : 5);
      const bool last = rank == 2;
      std::optional<shard_layout> layout;
      if (sharded) layout.emplace(g.layout(ranks));
      device_loss_scaler scaler(g.shards(sharded ? rank : 0), last ? other : native_scaling{},
                                options(last ? other_norm : max_norm, std::move(layout)));
      const float before = downloaded(scaler.scale());
      const step_report r = stepped(scaler, ranks);
      if (r.cause != step_cause::ranks_differ) return;
      count[static_cast<std::size_t>(rank)] = 1;
      EXPECT_TRUE(r.stop);
      EXPECT_FALSE(r.applied);
      EXPECT_EQ(r.grad_mul, 0.0f);
      EXPECT_EQ(downloaded(scaler.scale()), before);
    });
    return count[0] + count[1] + count[2];
  };
  using enum spread;
  EXPECT_EQ(differ(own, inf, {}, inf), 0);
  EXPECT_EQ(differ(same, 1.0, {}, 1.0), 0);
  EXPECT_EQ(differ(own, inf, {.init_exponent = 15}, inf), 3);
  EXPECT_EQ(differ(own, inf, {.hysteresis = 3}, inf), 3);
  EXPECT_EQ(differ(own, 1.0, {}, 1.0), 3);  // norms of shards are not the norm
  EXPECT_EQ(differ(sharded, 1.0, {}, 1.0), 0);
  EXPECT_EQ(differ(sharded, 1.0, {}, 2.0), 3);
  EXPECT_EQ(differ(sharded, 1.0, {}, inf), 3);
  EXPECT_EQ(differ(sharded, 1.0, {.hysteresis = 3}, 1.0), 3);
}

TEST_P(ScalerShards, Refuses) {
  const auto of_elements = [](std::int64_t count) {
    return spread_gradients({{format_id::fp16, dense_layout(1, count), {0, count}},
                             {format_id::fp16, dense_layout(1, 0), {0, 0}},
                             {format_id::fp16, dense_layout(1, 9), {0, 9}}},
                            1);
  };
  spread_gradients mine = of_elements(8), other = of_elements(9);
  single_rank one;
  const shard_layout layout = mine.layout(one);
  device_loss_scaler scaler(mine.shards(0), native_scaling{}, options(1.0, layout));
  EXPECT_THROW(scaler.step(nullptr), call_order_error);
  EXPECT_THROW(scaler.decide(nullptr), call_order_error);
  EXPECT_EQ(refusal_of([&] {
              device_loss_scaler s(other.shards(0), native_scaling{}, options(1.0, layout));
            }),
            "options.shards: holds 8 elements of gradients[0], which has 9");
  EXPECT_EQ(refusal_of([&] {
              device_loss_scaler s(tensor_list(), native_scaling{}, options(1.0, layout));
            }),
            "options.shards: is of 3 tensors, gradients are 0");
  EXPECT_THROW(scaler.agree(one), invalid_argument);  // on host memory
  on_ranks(2, [&](communicator& two) {
    if (two.rank() != 0) return;
    EXPECT_EQ(refusal_of([&] { scaler.agree(two); }),
              "ranks: is rank 0 of 2, options.shards were laid out for rank 0 of 1");
  });
  device_loss_scaler alone(mine.shards(0), native_scaling{}, options());
  EXPECT_THROW(alone.agree(one), invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Backends, ScalerShards, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
