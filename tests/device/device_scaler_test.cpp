// The loss scaler of a GPU against decide() and inspect() on the host: every report, every policy,
// one by one and as replays of a graph.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "device/cuda_backends.hpp"
#include "device/scaler_case.hpp"
#include "numerics/loss_scale/decide.hpp"
#include "samebits/device_loss_scaler.hpp"
#include "samebits/samebits.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

/// The same scaler on the host.
template <class Settings>
class host_scaler {
 public:
  host_scaler(Settings settings, double max_norm)
      : settings_(settings), scaler_{initial_state(settings), 0, 0}, max_norm_(max_norm) {}

  step_report step(const tensor_list& list, bool bad_loss = false) {
    const inspect_report seen = inspect(list, {}, {"reference"});
    rank_observation observed;
    observed.seen = seen.observation();
    observed.seen.loss_nonfinite = bad_loss;
    observed.first_bad = seen.first_bad;
    return decide(settings_, scaler_, observed, {seen.total.squares, max_norm_});
  }
  [[nodiscard]] double scale() const { return scale_of(scaler_.policy); }

 private:
  Settings settings_;
  numerics::resident_scaler<decltype(initial_state(std::declval<const Settings&>()))> scaler_;
  double max_norm_;
};

class DeviceScaler : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    initialize(GetParam());
    check_cuda(cudaStreamCreate(&stream_), "stream");
  }
  void TearDown() override { cudaStreamDestroy(stream_); }

  [[nodiscard]] device_scaler_options options(double max_norm = 1.0) const {
    return {.max_norm = max_norm, .reports = 16, .backend = GetParam()};
  }
  void wait() { check_cuda(cudaStreamSynchronize(stream_), "steps"); }

  template <class Settings>
  void expect_host_steps(const Settings& settings, int steps, double max_norm = 0x1p-12) {
    engine random(7);
    gradients g;
    int clipped = 0;
    host_scaler<Settings> host(settings, max_norm);
    device_loss_scaler scaler(g.on_device(), settings, options(max_norm));
    ASSERT_EQ(downloaded(scaler.scale()), static_cast<float>(host.scale()));
    for (int i = 0; i < steps; ++i) {
      g.draw(random, host.scale());
      const step_report expected = host.step(g.on_host());
      scaler.step(stream_);
      wait();
      const auto got = scaler.poll();
      ASSERT_TRUE(got.has_value()) << "step " << i;
      ASSERT_EQ(fields(*got), fields(expected)) << name(Settings::policy) << ", step " << i;
      ASSERT_EQ(fields(downloaded(scaler.decision())), fields(expected));
      ASSERT_EQ(downloaded(scaler.scale()), static_cast<float>(host.scale()));
      ASSERT_FALSE(scaler.poll().has_value());
      clipped += got->applied && got->norm > max_norm ? 1 : 0;
    }
    if (!smallest_effort()) {
      EXPECT_GT(clipped, 0) << name(Settings::policy);
    }
  }

  cudaStream_t stream_ = nullptr;
};

TEST_P(DeviceScaler, DecidesAsTheHostDoes) {
  native_scaling native;
  native.growth_interval = 20;
  native.recovery_interval = 5;
  expect_host_steps(native, by_effort(400, 40));
  expect_host_steps(torch_scaling{.growth_interval = 10}, by_effort(400, 40));
  expect_host_steps(apex_scaling{}, by_effort(100, 20));
  expect_host_steps(apex_amp_scaling{}, by_effort(100, 20));
  expect_host_steps(megatron_scaling{}, by_effort(100, 20), 0x1p-30);
  expect_host_steps(deepspeed_scaling{}, by_effort(100, 20));
}

TEST_P(DeviceScaler, TakesThreeLaunchesThatReplayAsTheyRun) {
  engine random(8), again(8);
  gradients g, h;
  const native_scaling settings = {.growth_interval = 20, .recovery_interval = 5};
  device_loss_scaler eager(g.on_device(), settings, options());
  device_loss_scaler replayed(h.on_device(), settings, options());
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), "begin capture");
  replayed.step(stream_);
  check_cuda(cudaStreamEndCapture(stream_, &graph), "end capture");
  std::size_t nodes = 0;
  check_cuda(cudaGraphGetNodes(graph, nullptr, &nodes), "nodes");
  EXPECT_EQ(nodes, 3u);
  check_cuda(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  double scale = 0x1p16;
  for (int i = 0; i < by_effort(200, 20); ++i) {
    g.draw(random, scale);
    h.draw(again, scale);
    eager.step(stream_);
    check_cuda(cudaGraphLaunch(exec, stream_), "replay");
    wait();
    const auto expected = eager.poll();
    const auto got = replayed.poll();
    ASSERT_TRUE(expected.has_value() && got.has_value());
    ASSERT_EQ(fields(*got), fields(*expected)) << "step " << i;
    scale = expected->scale;
  }
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

TEST_P(DeviceScaler, ResumesWithTheBitsOfNoInterruption) {
  engine random(9);
  gradients g;
  const native_scaling settings = {.growth_interval = 10, .recovery_interval = 5};
  device_loss_scaler whole(g.on_device(), settings, options());
  loss_scaler kept(settings);
  {
    device_loss_scaler first(g.on_device(), settings, options());
    for (int i = 0; i < 50; ++i) {
      g.draw(random, 0x1p17);
      whole.step(stream_);
      first.step(stream_);
      wait();
      ASSERT_TRUE(whole.poll().has_value());
    }
    kept = first.on_host(stream_);
  }
  EXPECT_EQ(kept.updates(), 50u);
  device_loss_scaler second(g.on_device(), kept, options());
  for (int i = 0; i < 50; ++i) {
    g.draw(random, 0x1p17);
    whole.step(stream_);
    second.step(stream_);
    wait();
    const auto expected = whole.poll();
    const auto got = second.poll();
    ASSERT_TRUE(expected.has_value() && got.has_value());
    ASSERT_EQ(fields(*got), fields(*expected)) << "step " << i;
  }
}

TEST_P(DeviceScaler, ResumesFromItsText) {
  engine random(19);
  gradients g;
  torch_scaling settings;
  settings.growth_interval = 7;
  device_loss_scaler whole(g.on_device(), settings, options());
  auto resumed = std::make_unique<device_loss_scaler>(g.on_device(), settings, options());
  for (int i = 0; i < by_effort(100, 10); ++i) {
    g.draw(random, static_cast<double>(downloaded(whole.scale())));
    check_cuda(cudaDeviceSynchronize(), "gradients to the device");
    const std::string text = resumed->save(stream_);
    const loss_scaler read = loss_scaler::load(text);
    ASSERT_EQ(read.updates(), static_cast<std::uint64_t>(i));
    resumed = std::make_unique<device_loss_scaler>(g.on_device(), read, options());
    ASSERT_EQ(resumed->save(stream_), text);
    whole.step(stream_);
    resumed->step(stream_);
    wait();
    const auto expected = whole.poll();
    const auto got = resumed->poll();
    ASSERT_TRUE(expected.has_value() && got.has_value());
    ASSERT_EQ(fields(*got), fields(*expected)) << "step " << i;
  }
  EXPECT_EQ(resumed->save(stream_), whole.save(stream_));
}

TEST_P(DeviceScaler, BlamesALossOnlyOnce) {
  engine random(10);
  gradients g;
  const native_scaling settings;
  host_scaler<native_scaling> host(settings, 1.0);
  device_loss_scaler scaler(g.on_device(), settings, options());
  const std::vector<float> losses(1000, 2.5f);
  const guarded_copy good(losses.data(), losses.size() * 4);
  std::vector<float> with_nan = losses;
  with_nan[777] = std::numeric_limits<float>::quiet_NaN();
  const guarded_copy bad(with_nan.data(), with_nan.size() * 4);
  for (int i = 0; i < 20; ++i) {
    g.draw(random, 1);
    const bool bad_loss = i % 3 == 0;
    if (bad_loss) g.codes()[5] = 0x7FFF;
    check_cuda(cudaDeviceSynchronize(), "draw");
    tensor_list device = g.on_device();
    check_cuda(cudaMemcpy(device[0].view.data, g.codes().data(), 64, cudaMemcpyHostToDevice),
               "the bad element");
    const step_report expected = host.step(g.on_host(), bad_loss);
    scaler.observe_losses(static_cast<const float*>((bad_loss ? bad : good).data()), 1000, stream_);
    scaler.observe_losses(static_cast<const float*>(good.data()), 1000, stream_);
    scaler.step(stream_);
    wait();
    const auto got = scaler.poll();
    ASSERT_TRUE(got.has_value());
    ASSERT_EQ(fields(*got), fields(expected)) << "step " << i;
    if (bad_loss) {
      EXPECT_EQ(got->cause, step_cause::loss);
    }
  }
}

TEST_P(DeviceScaler, AppliesUnlessSkipped) {
  engine random(11);
  gradients g;
  device_loss_scaler scaler(g.on_device(), native_scaling{}, options(1e-4));
  for (const bool bad : {false, true, false}) {
    for (std::uint16_t& code : g.codes()) code = static_cast<std::uint16_t>(random() & 0xBBFFu);
    if (bad) g.codes()[19'999] = 0x7C00;
    const tensor_list device = g.on_device();
    check_cuda(cudaMemcpy(device[0].view.data, g.codes().data(), g.codes().size() * 2,
                          cudaMemcpyHostToDevice),
               "gradients");
    std::vector<std::uint16_t> expected = g.codes();
    scaler.step(stream_);
    scaler.apply(device, stream_);
    wait();
    const auto report = scaler.poll();
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->applied, !bad);
    if (report->applied) {
      EXPECT_LT(report->grad_mul, 0x1p-16f) << "clipped";
      const auto count = static_cast<std::int64_t>(expected.size());
      const matrix_view view = {expected.data(), format_id::fp16, 1, count, count, 1};
      samebits::scale(tensor_list(std::span<const matrix_view>(&view, 1)), report->grad_mul,
                      {"reference"});
    }
    g.download();
    EXPECT_EQ(g.codes(), expected) << "bad " << bad;
  }
}

TEST_P(DeviceScaler, CountsReportsThatWereNotPolled) {
  gradients g;
  device_loss_scaler scaler(g.on_device(), native_scaling{}, options());
  for (int i = 0; i < 20; ++i) scaler.step(stream_);
  wait();
  std::uint64_t seen = 0;
  while (scaler.poll()) ++seen;
  EXPECT_EQ(seen + scaler.lost(), 20u);
  EXPECT_GT(seen, 0u);
  EXPECT_GE(scaler.lost(), 4u);
}

TEST_P(DeviceScaler, RefusesWhatItCannotKeep) {
  gradients g;
  EXPECT_THROW(device_loss_scaler(g.on_host(), native_scaling{}, options()), invalid_argument);
  EXPECT_THROW(device_loss_scaler(g.on_device(), native_scaling{}, options(-1)), invalid_argument);
  EXPECT_THROW(device_loss_scaler(g.on_device(), native_scaling{}, options(std::nan(""))),
               invalid_argument);
  EXPECT_THROW(device_loss_scaler(g.on_device(), native_scaling{},
                                  device_scaler_options{.reports = 0, .backend = GetParam()}),
               invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Backends, DeviceScaler, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
