// The loss scaler of a GPU over ranks: replays of one graph, scalers that differ. Every report, for
// every policy: device.property_shardedlossscaler.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "device/cuda_backends.hpp"
#include "device/device_ranks.hpp"
#include "device/scaler_case.hpp"
#include "samebits/testkit/ranks.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

/// Gradients of every rank are its own, or the same on all: what may be clipped.
enum class spread : std::uint8_t { sharded, replicated };

/// One rank's random gradients.
class scenario {
 public:
  scenario(spread how, int rank)
      : random_(how == spread::sharded ? 100 + static_cast<std::uint64_t>(rank) : 99) {}

  void draw(gradients& g, double scale) { g.draw(random_, scale); }

 private:
  engine random_;
};

class ScalerRanks : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { initialize(GetParam()); }

  [[nodiscard]] device_scaler_options options(double max_norm) const {
    return {.max_norm = max_norm, .reports = 16, .backend = GetParam()};
  }

  device_streams streams_;
};

TEST_P(ScalerRanks, ScalersThatDifferSkipAndStopOnEveryRank) {
  const auto run = [&](const native_scaling& usual, const native_scaling& other, double max_norm,
                       spread how) {
    std::vector<int> differ(3);
    simulate_device_ranks(streams_, 3, [&](communicator& ranks) {
      gradients g;
      scenario random_scenario(how, ranks.rank());
      random_scenario.draw(g, 1);
      g.codes()[0] = 0x3C00;  // finite in every scenario
      device_loss_scaler scaler(g.on_device(), ranks.rank() == 2 ? other : usual,
                                options(max_norm));
      check_cuda(cudaStreamSynchronize(nullptr), "gradients to the device");
      const float before = downloaded(scaler.scale());
      scaler.step(ranks);
      check_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(ranks.stream())), "step");
      const auto got = scaler.poll();
      ASSERT_TRUE(got.has_value());
      if (got->cause != step_cause::ranks_differ) return;
      differ[static_cast<std::size_t>(ranks.rank())] = 1;
      EXPECT_TRUE(got->stop);
      EXPECT_FALSE(got->applied);
      EXPECT_EQ(got->grad_mul, 0.0f);
      EXPECT_EQ(downloaded(scaler.scale()), before);
    });
    return differ[0] + differ[1] + differ[2];
  };
  constexpr double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(run({}, {}, inf, spread::sharded), 0);
  EXPECT_EQ(run({}, {}, 1.0, spread::replicated), 0);
  EXPECT_EQ(run({}, {.init_exponent = 15}, inf, spread::sharded), 3);
  EXPECT_EQ(run({}, {.hysteresis = 3}, inf, spread::sharded), 3);
  // Norms of shards are not the norm.
  EXPECT_EQ(run({}, {}, 1.0, spread::sharded), 3);
}

TEST_P(ScalerRanks, ReplaysOfOneGraphAreTheStepsOfAllRanks) {
  constexpr int n = 4;
  const native_scaling settings = {.growth_interval = 20, .recovery_interval = 5};
  constexpr double inf = std::numeric_limits<double>::infinity();
  std::vector<std::unique_ptr<gradients>> g;
  std::vector<std::unique_ptr<device_loss_scaler>> eager, replayed;
  std::vector<scenario> scenarios;
  for (int r = 0; r < n; ++r) {
    g.push_back(std::make_unique<gradients>());
    eager.push_back(
        std::make_unique<device_loss_scaler>(g.back()->on_device(), settings, options(inf)));
    replayed.push_back(
        std::make_unique<device_loss_scaler>(g.back()->on_device(), settings, options(inf)));
    scenarios.emplace_back(spread::sharded, r);
  }
  lockstep_ranks ranks(streams_, n);
  const auto step = [&](const auto& scalers) {
    for (int r = 0; r < n; ++r) scalers[static_cast<std::size_t>(r)]->inspect(streams_.stream(r));
    for (int r = 0; r < n; ++r) scalers[static_cast<std::size_t>(r)]->agree(ranks[r]);
    for (int r = 0; r < n; ++r) scalers[static_cast<std::size_t>(r)]->decide(streams_.stream(r));
  };
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check_cuda(cudaStreamBeginCapture(streams_.stream(0), cudaStreamCaptureModeRelaxed), "begin");
  streams_.mark(0, true);
  for (int r = 1; r < n; ++r) streams_.wait_for_all(r, 1, true);
  step(replayed);
  for (int r = 1; r < n; ++r) streams_.mark(r, true);
  streams_.wait_for_all(0, n, true);
  check_cuda(cudaStreamEndCapture(streams_.stream(0), &graph), "end");
  check_cuda(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  int skipped = 0;
  for (int i = 0; i < by_effort(200, 20); ++i) {
    for (std::size_t r = 0; r < n; ++r) {
      scenarios[r].draw(*g[r], static_cast<double>(downloaded(eager[r]->scale())));
    }
    check_cuda(cudaDeviceSynchronize(), "gradients to the device");
    step(eager);
    streams_.synchronize();
    check_cuda(cudaGraphLaunch(exec, streams_.stream(0)), "replay");
    streams_.synchronize();
    for (std::size_t r = 0; r < n; ++r) {
      const auto expected = eager[r]->poll();
      const auto got = replayed[r]->poll();
      ASSERT_TRUE(expected.has_value() && got.has_value());
      ASSERT_EQ(fields(*got), fields(*expected)) << "rank " << r << ", step " << i;
      skipped += r == 0 && !got->applied ? 1 : 0;
    }
  }
  if (!smallest_effort()) {
    EXPECT_GT(skipped, 10);
  }
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

TEST_P(ScalerRanks, RefusesRanksOnHostMemory) {
  gradients g;
  device_loss_scaler scaler(g.on_device(), native_scaling{}, options(1.0));
  single_rank ranks;
  EXPECT_THROW(scaler.agree(ranks), invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Backends, ScalerRanks, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
