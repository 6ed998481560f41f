// The loss scaler of a GPU: replays of a graph, resumption, reports that nobody polls, refusals.
// Its decisions: device.property_lossscaler.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/captured_graph.hpp"
#include "device/scaler_gradients.hpp"
#include "samebits/samebits.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

class DeviceScaler : public ScalerTest {
 protected:
  /// One long tensor, a short and an empty one.
  static spread_gradients drawn(std::uint64_t seed) {
    scenario_tensors all;
    for (const std::int64_t size : {20'000, 0, 24}) {
      all.push_back({format_id::fp16, dense_layout(1, size), {0, size}});
    }
    return {std::move(all), seed};
  }
  void wait() const { check_cuda(cudaStreamSynchronize(stream_.get()), "steps"); }
  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }

  /// A step of both on other gradients, and the same reports.
  void expect_same_step(spread_gradients& g, device_loss_scaler& expected, device_loss_scaler& got,
                        double scale) {
    g.draw(scale);
    expected.step(stream());
    got.step(stream());
    wait();
    ASSERT_EQ(fields(polled(got)), fields(polled(expected)));
  }

 private:
  own_stream stream_;
};

TEST_P(DeviceScaler, TakesThreeLaunchesThatReplayAsTheyRun) {
  spread_gradients g = drawn(8), h = drawn(8);
  const native_scaling settings = {.growth_interval = 20, .recovery_interval = 5};
  device_loss_scaler eager(g.shards(0), settings, options());
  device_loss_scaler replayed(h.shards(0), settings, options());
  const tensor_list of_eager = g.shards(0), of_replayed = h.shards(0);
  const captured_graph graph(stream(), [&] { replayed.step(stream()); });
  const captured_graph applied(stream(), [&] { replayed.apply(of_replayed, stream()); });
  EXPECT_EQ(graph.nodes(), 3u);
  double scale = 0x1p16;
  for (int i = 0; i < by_effort(200, 20); ++i) {
    g.draw(scale);
    h.draw(scale);
    eager.step(stream());
    graph.launch();
    wait();
    const step_report expected = polled(eager);
    ASSERT_EQ(fields(polled(replayed)), fields(expected)) << "step " << i;
    scale = expected.scale;
  }
  eager.apply(of_eager, stream());
  applied.launch();
  wait();
  EXPECT_EQ(inspect(of_replayed).total.amax_bits, inspect(of_eager).total.amax_bits);
}

TEST_P(DeviceScaler, ResumesFromItsText) {
  spread_gradients g = drawn(19);
  torch_scaling settings;
  settings.growth_interval = 7;
  device_loss_scaler whole(g.shards(0), settings, options());
  auto resumed = std::make_unique<device_loss_scaler>(g.shards(0), settings, options());
  for (int i = 0; i < by_effort(100, 10); ++i) {
    const std::string text = resumed->save(stream());
    const loss_scaler read = loss_scaler::load(text);
    ASSERT_EQ(read.updates(), static_cast<std::uint64_t>(i));
    resumed = std::make_unique<device_loss_scaler>(g.shards(0), read, options());
    ASSERT_EQ(resumed->save(stream()), text);
    expect_same_step(g, whole, *resumed, static_cast<double>(downloaded(whole.scale())));
  }
  EXPECT_EQ(resumed->save(stream()), whole.save(stream()));
}

TEST_P(DeviceScaler, CountsReportsThatWereNotPolled) {
  spread_gradients g = drawn(1);
  device_loss_scaler scaler(g.shards(0), native_scaling{}, options());
  for (int i = 0; i < 20; ++i) scaler.step(stream());
  wait();
  std::uint64_t seen = 0;
  while (scaler.poll()) ++seen;
  EXPECT_EQ(seen + scaler.lost(), 20u);
  EXPECT_GT(seen, 0u);
  EXPECT_GE(scaler.lost(), 4u);
}

/// The host reads while steps run; a scaler with room for all reports says what each must be.
TEST_P(DeviceScaler, ReportsThatAreReadMeanwhileAreWhole) {
  const auto steps = by_effort<std::uint32_t>(4000, 100);
  spread_gradients g = drawn(2);
  const native_scaling settings = {.growth_interval = 6, .recovery_interval = 3};
  device_scaler_options roomy = options();
  roomy.reports = steps;
  device_loss_scaler kept(g.shards(0), settings, roomy);
  device_loss_scaler scaler(g.shards(0), settings, options());
  for (std::uint32_t i = 0; i < steps; ++i) kept.step(stream());
  wait();
  std::vector<step_report> expected;
  while (const auto report = kept.poll()) expected.push_back(*report);
  ASSERT_EQ(expected.size(), steps);
  std::uint64_t read = 0;
  const auto take_all = [&] {
    while (const auto got = scaler.poll()) {
      ++read;
      ASSERT_EQ(fields(*got), fields(expected.at(got->step)));
    }
  };
  for (std::uint32_t i = 0; i < steps; ++i) {
    scaler.step(stream());
    if (i % 64 == 63) take_all();
  }
  while (cudaStreamQuery(stream()) == cudaErrorNotReady) take_all();
  wait();
  take_all();
  EXPECT_EQ(read + scaler.lost(), steps);
}

TEST_P(DeviceScaler, RefusesWhatItCannotKeep) {
  spread_gradients g = drawn(1);
  float number = 1;
  const auto made = [&](const tensor_list& gradients, const device_scaler_options& how) {
    device_loss_scaler(gradients, native_scaling{}, how);
  };
  device_scaler_options no_reports = options();
  no_reports.reports = 0;
  EXPECT_THROW(made(tensor_list(view_of(&number, 1, 1)), options()), invalid_argument);
  EXPECT_THROW(made(g.shards(0), options(-1)), invalid_argument);
  EXPECT_THROW(made(g.shards(0), options(std::nan(""))), invalid_argument);
  EXPECT_THROW(made(g.shards(0), no_reports), invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Backends, DeviceScaler, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
