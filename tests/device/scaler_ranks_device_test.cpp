// The loss scaler of a GPU over ranks: every report, for every policy, against the ranks' scalers
// on the host; one by one and as replays of one graph.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda_backends.hpp"
#include "device/device_ranks.hpp"
#include "device/scaler_case.hpp"
#include "samebits/testkit/ranks.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

const int steps = by_effort(300, 6);

/// Gradients of every rank are its own, or the same on all: what may be clipped.
enum class spread : std::uint8_t { sharded, replicated };

/// One rank's random scenario, the same on host and device: gradients, and whether its loss is NaN.
class scenario {
 public:
  scenario(spread how, int rank)
      : random_(how == spread::sharded ? 100 + static_cast<std::uint64_t>(rank) : 99),
        losses_(500 + static_cast<std::uint64_t>(rank)) {}

  [[nodiscard]] bool draw(gradients& g, double scale) {
    g.draw(random_, scale);
    return losses_() % 60 == 0;
  }

 private:
  engine random_;
  engine losses_;
};

using report_fields = decltype(fields(step_report{}));

/// What all steps must report on each rank: decide() of what agree() says. The scaler of the host,
/// handed the same, must take the same decisions.
template <class Settings>
std::vector<std::vector<report_fields>> host_reports(const Settings& settings, int n, spread how,
                                                     double max_norm) {
  std::vector<std::vector<report_fields>> reports(static_cast<std::size_t>(n));
  testkit::simulate_ranks(n, [&](communicator& ranks) {
    gradients g;
    scenario random_scenario(how, ranks.rank());
    numerics::resident_scaler<decltype(initial_state(settings))> resident = {
        initial_state(settings), 0, 0};
    loss_scaler scaler(settings);
    for (int i = 0; i < steps; ++i) {
      const bool bad_loss = random_scenario.draw(g, scale_of(resident.policy));
      const inspect_report seen = inspect(g.on_host(), {}, {"reference"});
      rank_observation mine = {.seen = seen.observation(), .first_bad = seen.first_bad};
      mine.seen.loss_nonfinite = bad_loss;
      const rank_observation all = agree(ranks, mine);
      const step_report report = decide(settings, resident, all, {seen.total.squares, max_norm});
      scaler.scale(bad_loss ? std::numeric_limits<float>::quiet_NaN() : 1.0f);
      scaler.observe(seen.observation());
      scaler.agree(ranks);
      ASSERT_EQ(scaler.step([] {}), report.applied) << "step " << i;
      step_decision d;
      try {
        d = scaler.update();
        ASSERT_FALSE(report.stop);
      } catch (const scale_exhausted&) {
        d = {report.applied, report.cause, report.change, true};
        ASSERT_TRUE(report.stop);
      }
      ASSERT_EQ(d.cause, report.cause) << "step " << i;
      ASSERT_EQ(d.change, report.change) << "step " << i;
      ASSERT_EQ(scaler.get_scale(), scale_of(resident.policy)) << "step " << i;
      reports[static_cast<std::size_t>(ranks.rank())].push_back(fields(report));
    }
  });
  return reports;
}

/// Losses in device memory, good and bad.
class losses {
 public:
  losses() : good_(values_.data(), 4 * values_.size()) {
    values_[33] = std::numeric_limits<float>::quiet_NaN();
    bad_ = std::make_unique<guarded_copy>(values_.data(), 4 * values_.size());
  }
  [[nodiscard]] const float* of(bool bad) const {
    return static_cast<const float*>(bad ? bad_->data() : good_.data());
  }
  static constexpr std::int64_t count = 64;

 private:
  std::vector<float> values_ = std::vector<float>(count, 1.5f);
  guarded_copy good_;
  std::unique_ptr<guarded_copy> bad_;
};

class ScalerRanks : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { initialize(GetParam()); }

  [[nodiscard]] device_scaler_options options(double max_norm) const {
    return {.max_norm = max_norm, .reports = 16, .backend = GetParam()};
  }

  template <class Settings>
  void expect_host_steps(const Settings& settings, int n, spread how, double max_norm) {
    const auto expected = host_reports(settings, n, how, max_norm);
    ASSERT_FALSE(HasFailure());
    const losses l;
    simulate_device_ranks(streams_, n, [&](communicator& ranks) {
      const auto stream = static_cast<cudaStream_t>(ranks.stream());
      gradients g;
      scenario random_scenario(how, ranks.rank());
      device_loss_scaler scaler(g.on_device(), settings, options(max_norm));
      for (int i = 0; i < steps; ++i) {
        const bool bad_loss =
            random_scenario.draw(g, static_cast<double>(downloaded(scaler.scale())));
        check_cuda(cudaStreamSynchronize(nullptr), "gradients to the device");
        scaler.observe_losses(l.of(bad_loss), losses::count, stream);
        scaler.step(ranks);
        check_cuda(cudaStreamSynchronize(stream), "step");
        const auto got = scaler.poll();
        ASSERT_TRUE(got.has_value()) << "step " << i;
        const auto mine = static_cast<std::size_t>(ranks.rank());
        ASSERT_EQ(fields(*got), expected[mine][static_cast<std::size_t>(i)])
            << name(Settings::policy) << ", rank " << mine << " of " << n << ", step " << i;
        ASSERT_FALSE(scaler.poll().has_value());
      }
    });
    reports_ += n * steps;
  }

  template <class Settings>
  void expect_host_steps(const Settings& settings) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    expect_host_steps(settings, 1, spread::sharded, inf);
    expect_host_steps(settings, 3, spread::sharded, inf);
    expect_host_steps(settings, 8, spread::sharded, inf);
    expect_host_steps(settings, 2, spread::replicated, 0x1p-12);
    expect_host_steps(settings, 5, spread::replicated, 0x1p-20);
    std::printf("%s, %s: %d reports compared\n", std::string(GetParam()).c_str(),
                std::string(name(Settings::policy)).c_str(), reports_);
  }

  device_streams streams_;
  int reports_ = 0;
};

TEST_P(ScalerRanks, NativeDecidesAsTheHostDoes) {
  expect_host_steps(native_scaling{.growth_interval = 20, .recovery_interval = 5});
}
TEST_P(ScalerRanks, TorchDecidesAsTheHostDoes) {
  expect_host_steps(torch_scaling{.growth_interval = 10});
}
TEST_P(ScalerRanks, ApexDecidesAsTheHostDoes) {
  expect_host_steps(apex_scaling{.growth_interval = 10, .hysteresis = 2});
}
TEST_P(ScalerRanks, ApexAmpDecidesAsTheHostDoes) {
  expect_host_steps(apex_amp_scaling{.scale_window = 10});
}
TEST_P(ScalerRanks, MegatronDecidesAsTheHostDoes) {
  expect_host_steps(megatron_scaling{.growth_interval = 10});
}
TEST_P(ScalerRanks, DeepspeedDecidesAsTheHostDoes) {
  expect_host_steps(deepspeed_scaling{.scale_window = 10});
}

TEST_P(ScalerRanks, ScalersThatDifferSkipAndStopOnEveryRank) {
  const auto run = [&](const native_scaling& usual, const native_scaling& other, double max_norm,
                       spread how) {
    std::vector<int> differ(3);
    simulate_device_ranks(streams_, 3, [&](communicator& ranks) {
      gradients g;
      scenario random_scenario(how, ranks.rank());
      (void)random_scenario.draw(g, 1);
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
      (void)scenarios[r].draw(*g[r], static_cast<double>(downloaded(eager[r]->scale())));
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
