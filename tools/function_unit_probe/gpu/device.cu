// The GPU's half of the function unit probe: runs instructions through PTX, and compares their
// results with the model.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "function_unit_probe/device.hpp"
#include "function_unit_probe/gpu/exact_sums.hpp"
#include "function_unit_probe/gpu/instructions.cuh"
#include "function_unit_probe/model.hpp"
#include "gpu_probe/current_gpu.hpp"

namespace samebits::cuda {
namespace {

using function_units::comparison;
using function_units::instruction;

/// An empty kernel: its attributes tell whether this build has kernels for the GPU, and for which
/// architecture they were compiled.
__global__ void function_unit_probe() {}

std::string why_unsupported() { return why_not_runnable(function_unit_probe); }

/// Kernels compiled for an older architecture lack the instructions of newer GPUs.
int capability() {
  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, function_unit_probe), "cudaFuncGetAttributes");
  // ptxVersion is the __CUDA_ARCH__ that kernels were compiled with, for machine code as well.
  return std::min(gpu_capability(), attributes.ptxVersion);
}

std::string description() {
  const cudaDeviceProp properties = gpu_properties();
  return std::string(properties.name) + ", compute capability " + std::to_string(properties.major) +
         "." + std::to_string(properties.minor) + ", CUDA " +
         std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION / 10 % 100);
}

/// An instruction as a type: nvcc 13.0 compiles no kernel with an enumerator as its argument.
template <instruction What>
struct unit {
  __device__ static std::uint32_t result(std::uint32_t x) { return result_of<What>(x); }
  SAMEBITS_HD static std::uint32_t model(std::uint32_t x) {
    return function_units::model_of<What>(x);
  }
  static constexpr std::uint64_t operands = operands_of(What);
};

/// Compares all operands with the model. One operand per thread in a grid-stride loop.
template <class Unit>
__global__ void compare_kernel(comparison* all) {
  comparison own{};
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < Unit::operands;
       i += step) {
    const auto x = static_cast<std::uint32_t>(i);
    const std::uint32_t result = Unit::result(x);
    const std::uint32_t expected = Unit::model(x);
    if (result != expected) own = {own.differed + 1, x, result, expected};
  }
  if (own.differed == 0 || atomicAdd(&all->differed, own.differed) != 0) return;
  all->operand = own.operand;
  all->result = own.result;
  all->expected = own.expected;
}

template <class Unit>
comparison compare_one() {
  const device_array<comparison> found(1);
  compare_kernel<Unit><<<2048, 256>>>(found.data());
  check(cudaGetLastError(), "compare_kernel");
  check(cudaDeviceSynchronize(), "compare_kernel");
  return found.read()[0];
}

comparison compare(instruction what) {
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    static constexpr comparison (*functions[])() = {
        compare_one<unit<static_cast<instruction>(I)>>...};
    return functions[static_cast<int>(what)]();
  }
  (std::make_integer_sequence<int, function_units::instruction_count>{});
}

constexpr function_units::device this_device = {why_unsupported, description, capability, compare,
                                                exact_sum};

}  // namespace
}  // namespace samebits::cuda

/// device.cpp finds this function through a weak reference.
extern "C" const samebits::function_units::device* samebits_function_unit_device() {
  return &samebits::cuda::this_device;
}
