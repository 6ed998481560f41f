// Loss-scaling policies inside kernels: the same scales and decisions as on the host, bit for bit.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "samebits/loss_scaler.hpp"
#include "tests/support/effort.hpp"

namespace samebits {
namespace {

const std::uint64_t traces = support::by_effort(1 << 17, 1 << 11);
constexpr int steps = 200;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorName(error) + ", " +
                           cudaGetErrorString(error));
}

/// Random words by counting (splitmix64), the same on both sides.
class counter_random {
 public:
  SAMEBITS_HD explicit counter_random(std::uint64_t seed) : at_(seed * 0xD1342543DE82EF95u) {}
  SAMEBITS_HD std::uint64_t next() {
    at_ += 0x9E3779B97F4A7C15u;
    std::uint64_t x = at_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }
  SAMEBITS_HD std::uint64_t below(std::uint64_t n) { return next() % n; }
  /// A number in [2^minimum, 2^(maximum + 1)) with a full significand.
  SAMEBITS_HD double number(int minimum, int maximum) {
    const std::uint64_t field = static_cast<std::uint64_t>(1023 + minimum) +
                                below(static_cast<std::uint64_t>(maximum - minimum + 1));
    return detail::number_of((field << 52) | (next() >> 12));
  }

 private:
  std::uint64_t at_;
};

SAMEBITS_HD void draw(native_scaling& s, counter_random& r) {
  s.growth_interval = static_cast<std::uint32_t>(1 + r.below(20));
  s.growth_interval_max = s.growth_interval + static_cast<std::uint32_t>(r.below(30));
  s.recovery_interval = static_cast<std::uint32_t>(1 + r.below(10));
  s.proof = static_cast<std::uint32_t>(1 + r.below(20));
  s.hysteresis = static_cast<std::uint32_t>(1 + r.below(4));
  s.forgive_after = static_cast<std::uint32_t>(r.below(12));
  s.isolated_cost = static_cast<std::uint32_t>(r.below(12));
  s.headroom_window = static_cast<std::uint32_t>(1 + r.below(12));
  s.min_exponent = -100;
  s.max_exponent = 100;
}
SAMEBITS_HD void draw(torch_scaling& s, counter_random& r) {
  s = {r.number(-126, 120), r.number(0, 20), r.number(-30, -1),
       static_cast<std::int64_t>(1 + r.below(20))};
}
SAMEBITS_HD void draw(apex_scaling& s, counter_random& r) {
  s = {r.number(-126, 120), r.number(0, 20), r.number(-30, -1),
       static_cast<std::int64_t>(1 + r.below(20)), static_cast<std::int64_t>(1 + r.below(5))};
}
SAMEBITS_HD void draw(apex_amp_scaling& s, counter_random& r) {
  s = {r.number(-900, 900), static_cast<std::int64_t>(1 + r.below(20)), r.number(-950, 20),
       r.number(10, 1000)};
}
SAMEBITS_HD void draw(megatron_scaling& s, counter_random& r) {
  s = {r.number(-60, 120),
       r.number(-120, -70),
       r.number(0, 20),
       r.number(-30, -1),
       static_cast<std::int64_t>(1 + r.below(20)),
       static_cast<std::int64_t>(1 + r.below(5))};
}
SAMEBITS_HD void draw(deepspeed_scaling& s, counter_random& r) {
  s = {r.number(-900, 900),
       r.number(0, 20),
       static_cast<std::int64_t>(1 + r.below(20)),
       r.number(-950, 40),
       static_cast<std::int64_t>(1 + r.below(5)),
       r.below(2) == 0,
       r.below(4) == 0};
}

/// A digest of everything that a trace shows.
template <class Settings>
SAMEBITS_HD std::uint64_t scenario(std::uint64_t trace) {
  counter_random r(trace);
  Settings settings;
  draw(settings, r);
  auto state = initial_state(settings);
  const std::uint64_t rate = 1 + r.below(900);
  std::uint64_t digest = 0xCBF29CE484222325u;
  for (int step = 0; step < steps; ++step) {
    step_observation seen;
    seen.nonfinite = r.below(1000) < rate;
    seen.loss_nonfinite = r.below(20) == 0;
    if (r.below(2) == 0) seen.amax = static_cast<std::uint32_t>(0x30000000u + r.below(0x18000000u));
    const step_decision decision = advance(settings, state, seen);
    const std::uint64_t word = numerics::scale_bits(state) ^ (std::uint64_t{decision.apply} << 61) ^
                               (static_cast<std::uint64_t>(decision.cause) << 3) ^
                               static_cast<std::uint64_t>(decision.change);
    digest = (digest ^ word) * 0x100000001B3u;
  }
  return digest;
}

template <class Settings>
__global__ void scenario_kernel(std::uint64_t* digests, std::uint64_t traces) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < traces) digests[i] = scenario<Settings>(i);
}

template <class Settings>
void expect_same() {
  std::uint64_t* digests = nullptr;
  check(cudaMalloc(&digests, traces * sizeof *digests), "cudaMalloc");
  scenario_kernel<Settings><<<static_cast<unsigned>(traces / 128), 128>>>(digests, traces);
  check(cudaGetLastError(), "scenario_kernel");
  std::vector<std::uint64_t> got(traces);
  check(cudaMemcpy(got.data(), digests, traces * sizeof *digests, cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  check(cudaFree(digests), "cudaFree");
  std::uint64_t differing = 0;
  for (std::uint64_t i = 0; i < traces; ++i) differing += got[i] != scenario<Settings>(i) ? 1 : 0;
  EXPECT_EQ(differing, 0u);
  std::printf("%s: %llu traces of %d steps, %llu differ\n",
              std::string(name(Settings::policy)).c_str(), static_cast<unsigned long long>(traces),
              steps, static_cast<unsigned long long>(differing));
}

TEST(LossScaleOnDevice, EveryPolicyDoesWhatItDoesOnTheHost) {
  expect_same<native_scaling>();
  expect_same<torch_scaling>();
  expect_same<apex_scaling>();
  expect_same<apex_amp_scaling>();
  expect_same<megatron_scaling>();
  expect_same<deepspeed_scaling>();
}

}  // namespace
}  // namespace samebits
