// Compares the GPU's function units with their model, once per device.
#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/common/runtime.hpp"
#include "backends/cuda/functions/definition_steps.cuh"
#include "backends/cuda/functions/functions.hpp"
#include "backends/cuda/functions/instruction_steps.cuh"
#include "backends/cuda/self_test/self_test_stream.hpp"

namespace samebits::cuda {
namespace {

/// Whether one of the threads found a difference; one per device.
__device__ unsigned int units_differ;

/// Compares every 1021st operand of each instruction. One operand per thread in a grid-stride loop.
__global__ void compare_kernel() {
#if defined(SAMEBITS_HOPPER_UNITS)
  constexpr std::uint64_t stride = 1021;
  const std::uint64_t first = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x * stride;
  using model = definition_steps;
  using unit = instruction_steps;
  bool differ = false;
  for (std::uint64_t i = first * stride; i < std::uint64_t{1} << 32; i += step) {
    const auto x = static_cast<std::uint32_t>(i);
    differ |= unit::ex2_approx_ftz(x) != model::ex2_approx_ftz(x);
    differ |= unit::ex2_approx(x) != model::ex2_approx(x);
    differ |= unit::lg2_approx(x) != model::lg2_approx(x);
    differ |= unit::rcp_approx_ftz(x) != model::rcp_approx_ftz(x);
    differ |= unit::rsqrt_approx_ftz(x) != model::rsqrt_approx_ftz(x);
    differ |= unit::rsqrt_approx(x) != model::rsqrt_approx(x);
  }
  if (differ) atomicOr(&units_differ, 1u);
#else
  units_differ = 1;
#endif
}

bool units_are_equal() {
  const capture_apart apart;
  const own_stream stream;
  unsigned int differ = 0;
  check(cudaMemcpyToSymbolAsync(units_differ, &differ, sizeof differ, 0, cudaMemcpyHostToDevice,
                                stream.get()),
        "function units: copy");
  launch_kernel("function units: compare", compare_kernel, 1024, 256, 0, stream.get());
  check(cudaMemcpyFromSymbolAsync(&differ, units_differ, sizeof differ, 0, cudaMemcpyDeviceToHost,
                                  stream.get()),
        "function units: copy");
  check(cudaStreamSynchronize(stream.get()), "function units: compare");
  return differ == 0;
}

enum answer : std::uint8_t { unknown, no, yes };

}  // namespace

bool units_hold() {
  const loaded_code code = code_of_current_device();
  // A device of capability 9.0 may also run kernels compiled for 8.0.
  if (code.capability != 90 || code.compiled_for != 90) return false;
  constexpr std::size_t max_devices = 64;
  static std::array<std::atomic<answer>, max_devices> known = {};
  static std::mutex comparing;
  int device = 0;
  check(cudaGetDevice(&device), "the current device");
  const auto at = static_cast<std::size_t>(device);
  if (at >= max_devices) return false;
  if (known[at] == unknown) {
    const std::lock_guard lock(comparing);
    if (known[at] == unknown) known[at] = units_are_equal() ? yes : no;
  }
  return known[at] == yes;
}

}  // namespace samebits::cuda
