// Sums of the results of functions of the rule `exact`: operands and sums in kernels, results by
// evaluate().
#include "function_unit_probe/gpu/exact_sums.hpp"

#include <cuda_runtime.h>

#include <cstdint>

#include "function_unit_probe/device.hpp"
#include "gpu_probe/current_gpu.hpp"
#include "samebits/evaluate.hpp"

namespace samebits::cuda {
namespace {

constexpr std::uint32_t chunk = 1u << 26;  ///< operands of a call
constexpr unsigned blocks = 2048;
constexpr unsigned threads = 256;

/// words[i] = first + i * step for a chunk, in a grid-stride loop.
__global__ void __launch_bounds__(threads)
    fill_kernel(std::uint32_t first, std::uint32_t step, std::uint32_t* words) {
  for (std::uint32_t i = blockIdx.x * threads + threadIdx.x; i < chunk; i += gridDim.x * threads) {
    words[i] = first + i * step;
  }
}

/// Adds the results of a chunk, times 2 x + 1, to *sum. Any order gives the same sum mod 2^64.
__global__ void __launch_bounds__(threads)
    sum_kernel(std::uint32_t first, const std::uint32_t* results, unsigned long long* sum) {
  unsigned long long part = 0;
  for (std::uint32_t i = blockIdx.x * threads + threadIdx.x; i < chunk; i += gridDim.x * threads) {
    part += results[i] * (2 * (std::uint64_t{first} + i) + 1);
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    part += __shfl_down_sync(0xFFFFFFFFu, part, lanes);
  }
  if (threadIdx.x % 32 == 0) atomicAdd(sum, part);
}

}  // namespace

std::uint64_t exact_sum(const numerics::real::exact_row& f) {
  constexpr std::size_t bytes = std::size_t{chunk} * sizeof(float);
  allocation in, grad, out;
  auto* const x = reinterpret_cast<std::uint32_t*>(in.on_device(bytes, "operands"));
  auto* const y = reinterpret_cast<std::uint32_t*>(out.on_device(bytes, "results"));
  const device_array<unsigned long long> sum(1);
  const auto view = [](void* data) {
    return on_device(view_of_codes(format_id::fp32, data, 1, chunk));
  };
  std::uint32_t* g = nullptr;
  if (f.gradient) {
    g = reinterpret_cast<std::uint32_t*>(grad.on_device(bytes, "gradients"));
    fill_kernel<<<blocks, threads>>>(0x3F800000, 0, g);
  }
  for (std::uint64_t first = 0; first < function_units::exact_operands; first += chunk) {
    const auto low = static_cast<std::uint32_t>(first);
    fill_kernel<<<blocks, threads>>>(low, 1, x);
    if (f.gradient) {
      evaluate_gradient(f.of, view(g), view(x), view(y), {}, {"cuda-native"});
    } else {
      evaluate(f.of, view(x), view(y), {}, {"cuda-native"});
    }
    sum_kernel<<<blocks, threads>>>(low, y, sum.data());
    check(cudaGetLastError(), "exact sum");
  }
  return sum.read()[0];
}

}  // namespace samebits::cuda
