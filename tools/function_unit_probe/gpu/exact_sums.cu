// Sums of the results of functions of the rule `exact`: operands and sums in kernels, results by
// evaluate().
#include "function_unit_probe/gpu/exact_sums.hpp"

#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/common/allocation.hpp"
#include "backends/cuda/common/error.hpp"
#include "function_unit_probe/device.hpp"
#include "samebits/evaluate.hpp"

namespace samebits::cuda {
namespace {

using numerics::real::exact_function;

constexpr std::uint32_t chunk = 1u << 26;  ///< operands of a call
constexpr unsigned blocks = 2048;
constexpr unsigned threads = 256;

/// operands[i] = first + i for a chunk, in a grid-stride loop.
__global__ void __launch_bounds__(threads)
    operands_kernel(std::uint32_t first, std::uint32_t* operands) {
  for (std::uint32_t i = blockIdx.x * threads + threadIdx.x; i < chunk; i += gridDim.x * threads) {
    operands[i] = first + i;
  }
}

/// words[i] = word for a chunk, in a grid-stride loop.
__global__ void __launch_bounds__(threads) fill_kernel(std::uint32_t word, std::uint32_t* words) {
  for (std::uint32_t i = blockIdx.x * threads + threadIdx.x; i < chunk; i += gridDim.x * threads) {
    words[i] = word;
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

/// The function of evaluate() or evaluate_gradient().
struct array_function {
  function of;
  bool gradient;
};
array_function array_function_of(exact_function f) {
  for (int i = 0; i < enum_count<function>; ++i) {
    for (const bool gradient : {false, true}) {
      if (numerics::real::find_exact(static_cast<function>(i), gradient) == f) {
        return {static_cast<function>(i), gradient};
      }
    }
  }
  return {};
}

}  // namespace

std::uint64_t exact_sum(exact_function f) {
  constexpr std::size_t bytes = std::size_t{chunk} * sizeof(float);
  allocation in, grad, out, total;
  auto* const x = reinterpret_cast<std::uint32_t*>(in.on_device(bytes, "operands"));
  auto* const y = reinterpret_cast<std::uint32_t*>(out.on_device(bytes, "results"));
  auto* const sum =
      reinterpret_cast<unsigned long long*>(total.on_device(sizeof(unsigned long long), "sum"));
  check(cudaMemsetAsync(sum, 0, sizeof *sum), "sum");
  const array_function function = array_function_of(f);
  const auto view = [](void* data) {
    return on_device(view_of_codes(format_id::fp32, data, 1, chunk));
  };
  std::uint32_t* g = nullptr;
  if (function.gradient) {
    g = reinterpret_cast<std::uint32_t*>(grad.on_device(bytes, "gradients"));
    fill_kernel<<<blocks, threads>>>(0x3F800000, g);
  }
  for (std::uint64_t first = 0; first < function_units::exact_operands; first += chunk) {
    const auto low = static_cast<std::uint32_t>(first);
    operands_kernel<<<blocks, threads>>>(low, x);
    if (function.gradient) {
      evaluate_gradient(function.of, view(g), view(x), view(y), {}, {"cuda-native"});
    } else {
      evaluate(function.of, view(x), view(y), {}, {"cuda-native"});
    }
    sum_kernel<<<blocks, threads>>>(low, y, sum);
    check(cudaGetLastError(), "exact sum");
  }
  unsigned long long result = 0;
  check(cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost), "exact sum");
  return result;
}

}  // namespace samebits::cuda
