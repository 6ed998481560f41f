// Decisions of resident scalers inside kernels: the same bits as on the host, in reports that the host
// reads meanwhile. Sums over ranks and messages: device.property_reducegradients and
// device.property_shardedlossscaler.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cuda/training/device_report.cuh"
#include "backends/loss_scaler/report_ring.hpp"
#include "device/device_copy.hpp"
#include "numerics/loss_scale/decide.hpp"
#include "samebits/loss_scaler.hpp"
#include "tests/support/effort.hpp"

namespace samebits {
namespace {

using support::by_effort;
using support::check_cuda;

/// A random word by counting (splitmix64), the same on both sides.
SAMEBITS_HD std::uint64_t word_at(std::uint64_t at) {
  std::uint64_t x = at * 0x9E3779B97F4A7C15u + 0xD1342543DE82EF95u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

SAMEBITS_HD rank_observation observation(std::uint64_t i) {
  const std::uint64_t random = word_at(i);
  rank_observation o;
  o.seen.nonfinite = random % 16 == 0;
  o.seen.loss_nonfinite = (random >> 8) % 8 == 0;
  o.seen.unscaled_nonfinite = (random >> 16) % 16 == 0;
  o.seen.amax = (random >> 24) % 8 == 0 ? static_cast<std::uint32_t>(random >> 32)
                                        : static_cast<std::uint32_t>(random >> 32) % 0x47000000u;
  if (o.seen.nonfinite) o.first_bad = static_cast<std::int64_t>((random >> 5) % 1000);
  return o;
}

const std::uint64_t decided_steps = by_effort(20'000, 500);

/// One step of a scenario whose norms are clipped now and then.
template <class Settings, class State>
SAMEBITS_HD step_report decided(const Settings& settings, numerics::resident_scaler<State>& scaler,
                                std::uint64_t step) {
  const std::uint64_t random = word_at(step * 2 + 1);
  const double squares = detail::number_of(random % 0x7FF0000000000000u);
  const double max_norm = detail::number_of((random * 5) % 0x7FF0000000000000u);
  return decide(settings, scaler, observation(step * 2), {squares, max_norm});
}

template <class Settings>
__global__ void decide_kernel(Settings settings, std::uint64_t steps, numerics::report_slot* ring,
                              std::uint64_t capacity) {
  numerics::resident_scaler<decltype(initial_state(settings))> scaler;
  scaler.policy = initial_state(settings);
  for (std::uint64_t step = 0; step < steps; ++step) {
    device::put_report(ring, capacity, decided(settings, scaler, step));
  }
}

/// The host reads while the kernel writes, and finds its own decisions.
template <class Settings>
void expect_same_scenario(const Settings& settings, std::uint64_t capacity) {
  std::vector<step_report> expected;
  numerics::resident_scaler<decltype(initial_state(settings))> scaler;
  scaler.policy = initial_state(settings);
  for (std::uint64_t step = 0; step < decided_steps; ++step) {
    expected.push_back(decided(settings, scaler, step));
  }
  numerics::report_slot* ring = nullptr;
  check_cuda(cudaHostAlloc(&ring, capacity * sizeof *ring, cudaHostAllocMapped), "cudaHostAlloc");
  std::memset(static_cast<void*>(ring), 0, capacity * sizeof *ring);
  backends::report_reader reader({ring, capacity});
  decide_kernel<<<1, 1>>>(settings, decided_steps, ring, capacity);
  check_cuda(cudaGetLastError(), "decide_kernel");
  std::uint64_t read = 0;
  std::uint64_t differ = 0;
  const auto take_all = [&] {
    while (const auto got = reader.poll()) {
      ++read;
      differ += std::memcmp(&*got, &expected[got->step], sizeof *got) != 0 ? 1 : 0;
    }
  };
  while (cudaStreamQuery(nullptr) == cudaErrorNotReady) take_all();
  check_cuda(cudaDeviceSynchronize(), "decide_kernel");
  take_all();
  EXPECT_EQ(differ, 0u);
  EXPECT_EQ(read + reader.lost(), decided_steps);
  if (capacity >= decided_steps) {
    EXPECT_EQ(reader.lost(), 0u);
  }
  std::printf("%s: %llu reports read, %llu lost, %llu differ\n",
              std::string(name(Settings::policy)).c_str(), static_cast<unsigned long long>(read),
              static_cast<unsigned long long>(reader.lost()),
              static_cast<unsigned long long>(differ));
  check_cuda(cudaFreeHost(ring), "cudaFreeHost");
}

TEST(RanksOnDevice, ReportsAreThoseOfTheHost) {
  for (const std::uint64_t capacity : {std::uint64_t{16}, decided_steps}) {
    // Scales with full significands that grow as often as they back off.
    expect_same_scenario(
        native_scaling{
            .growth_interval = 6, .recovery_interval = 3, .proof = 5, .isolated_cost = 2},
        capacity);
    expect_same_scenario(
        torch_scaling{.growth_factor = 2.7, .backoff_factor = 0.41, .growth_interval = 12},
        capacity);
    expect_same_scenario(
        apex_scaling{
            .growth_factor = 1.3, .backoff_factor = 0.6, .growth_interval = 9, .hysteresis = 2},
        capacity);
    expect_same_scenario(
        apex_amp_scaling{.init_scale = 50'000, .scale_window = 14, .min_loss_scale = 0.3},
        capacity);
    expect_same_scenario(megatron_scaling{.initial_scale = 1.1e6,
                                          .min_scale = 0.7,
                                          .growth_factor = 2.7,
                                          .backoff_factor = 0.41,
                                          .growth_interval = 12},
                         capacity);
    expect_same_scenario(deepspeed_scaling{.init_scale = 50'000,
                                           .scale_factor = 1.7,
                                           .scale_window = 9,
                                           .min_scale = 0.3,
                                           .raise_error_at_min_scale = false},
                         capacity);
  }
}

}  // namespace
}  // namespace samebits
