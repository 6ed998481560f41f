// The loss scaler of a GPU: replays of a graph, resumption, reports that nobody polls, refusals.
// Its decisions: device.property_lossscaler.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "device/captured_graph.hpp"
#include "device/cuda_backends.hpp"
#include "device/scaler_case.hpp"
#include "samebits/device_loss_scaler.hpp"
#include "samebits/samebits.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

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

  cudaStream_t stream_ = nullptr;
};

TEST_P(DeviceScaler, TakesThreeLaunchesThatReplayAsTheyRun) {
  engine random(8), again(8);
  gradients g, h;
  const native_scaling settings = {.growth_interval = 20, .recovery_interval = 5};
  device_loss_scaler eager(g.on_device(), settings, options());
  device_loss_scaler replayed(h.on_device(), settings, options());
  const captured_graph graph(stream_, [&] { replayed.step(stream_); });
  EXPECT_EQ(graph.nodes(), 3u);
  double scale = 0x1p16;
  for (int i = 0; i < by_effort(200, 20); ++i) {
    g.draw(random, scale);
    h.draw(again, scale);
    eager.step(stream_);
    graph.launch();
    wait();
    const auto expected = eager.poll();
    const auto got = replayed.poll();
    ASSERT_TRUE(expected.has_value() && got.has_value());
    ASSERT_EQ(fields(*got), fields(*expected)) << "step " << i;
    scale = expected->scale;
  }
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
