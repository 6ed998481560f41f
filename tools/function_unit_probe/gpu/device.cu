// The GPU's half of the function unit probe: runs instructions through PTX, and compares their
// results with the model.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/common/error.hpp"
#include "function_unit_probe/device.hpp"
#include "function_unit_probe/gpu/exact_sums.hpp"
#include "function_unit_probe/gpu/instructions.cuh"
#include "function_unit_probe/model.hpp"

namespace samebits::cuda {
namespace {

using function_units::comparison;
using function_units::instruction;

/// An empty kernel: its attributes tell whether this build has kernels for the GPU, and for which
/// architecture they were compiled.
__global__ void function_unit_probe() {}

int attribute(cudaDeviceAttr what) {
  int device = 0;
  int value = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&value, what, device), "cudaDeviceGetAttribute");
  return value;
}

std::string why_unsupported() {
  const auto failed = [](const std::string& what, cudaError_t error) {
    (void)cudaGetLastError();
    return what + ": " + cudaGetErrorString(error);
  };
  int count = 0;
  if (const cudaError_t e = cudaGetDeviceCount(&count); e != cudaSuccess) {
    return failed(
        e == cudaErrorInsufficientDriver ? "no NVIDIA driver, or one too old" : "no usable GPU", e);
  }
  cudaFuncAttributes attributes;
  if (const cudaError_t e = cudaFuncGetAttributes(&attributes, function_unit_probe);
      e != cudaSuccess) {
    return failed("this build has no kernels for the GPU", e);
  }
  return {};
}

int device_capability() {
  return 10 * attribute(cudaDevAttrComputeCapabilityMajor) +
         attribute(cudaDevAttrComputeCapabilityMinor);
}

/// Kernels compiled for an older architecture lack the instructions of newer GPUs.
int capability() {
  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, function_unit_probe), "cudaFuncGetAttributes");
  // ptxVersion is the __CUDA_ARCH__ that kernels were compiled with, for machine code as well.
  return std::min(device_capability(), attributes.ptxVersion);
}

std::string description() {
  int device = 0;
  cudaDeviceProp properties;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return std::string(properties.name) + ", compute capability " + std::to_string(properties.major) +
         "." + std::to_string(properties.minor) + ", CUDA " +
         std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION / 10 % 100);
}

/// Device memory for `count` objects.
template <class T>
class device_array {
 public:
  explicit device_array(std::size_t count) {
    check(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
  }
  ~device_array() { (void)cudaFree(data_); }
  device_array(const device_array&) = delete;
  device_array& operator=(const device_array&) = delete;
  [[nodiscard]] T* data() const { return data_; }

 private:
  T* data_ = nullptr;
};

struct found {
  unsigned long long differed;
  std::uint32_t operand;
};

/// An instruction as a type: nvcc 13.0 compiles no kernel with an enumerator as its argument.
template <instruction What>
struct unit {
  __device__ static std::uint32_t result(std::uint32_t x) { return result_of<What>(x); }
  SAMEBITS_HD static std::uint32_t model(std::uint32_t x) {
    return function_units::model_of<What>(x);
  }
  static constexpr std::uint64_t operands = std::uint64_t{1} << function_units::operand_bits(What);
};

/// Compares all operands with the model. One operand per thread in a grid-stride loop.
template <class Unit>
__global__ void compare_kernel(found* all) {
  unsigned int differed = 0;
  std::uint32_t operand = 0;
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < Unit::operands;
       i += step) {
    const auto x = static_cast<std::uint32_t>(i);
    if (Unit::result(x) == Unit::model(x)) continue;
    ++differed;
    operand = x;
  }
  if (differed == 0) return;
  if (atomicAdd(&all->differed, differed) == 0) all->operand = operand;
}

/// results[i] = the instruction's result at operands[i]. One operand per thread in a grid-stride
/// loop.
template <class Unit>
__global__ void record_kernel(const std::uint32_t* operands, std::uint64_t count,
                              std::uint32_t* results) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += step) {
    results[i] = Unit::result(operands[i]);
  }
}

template <class Unit>
std::vector<std::uint32_t> record_one(std::span<const std::uint32_t> operands) {
  const device_array<std::uint32_t> in(operands.size()), out(operands.size());
  check(cudaMemcpy(in.data(), operands.data(), operands.size_bytes(), cudaMemcpyHostToDevice),
        "cudaMemcpy");
  record_kernel<Unit><<<1024, 256>>>(in.data(), operands.size(), out.data());
  check(cudaGetLastError(), "record_kernel");
  std::vector<std::uint32_t> results(operands.size());
  check(cudaMemcpy(results.data(), out.data(), operands.size_bytes(), cudaMemcpyDeviceToHost),
        "record_kernel");
  return results;
}

template <class Unit>
comparison compare_one() {
  const device_array<found> on_device(1);
  check(cudaMemset(on_device.data(), 0, sizeof(found)), "cudaMemset");
  compare_kernel<Unit><<<2048, 256>>>(on_device.data());
  check(cudaGetLastError(), "compare_kernel");
  found f{};
  check(cudaMemcpy(&f, on_device.data(), sizeof f, cudaMemcpyDeviceToHost), "compare_kernel");
  comparison c{Unit::operands, f.differed, f.operand, 0, 0};
  if (f.differed == 0) return c;
  c.result = record_one<Unit>(std::span(&c.operand, 1))[0];
  c.expected = Unit::model(c.operand);
  return c;
}

comparison compare(instruction what) {
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    static constexpr comparison (*functions[])() = {
        compare_one<unit<static_cast<instruction>(I)>>...};
    return functions[static_cast<int>(what)]();
  }
  (std::make_integer_sequence<int, function_units::instruction_count>{});
}

std::vector<std::uint32_t> record(instruction what, std::span<const std::uint32_t> operands) {
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    using function = std::vector<std::uint32_t> (*)(std::span<const std::uint32_t>);
    static constexpr function functions[] = {record_one<unit<static_cast<instruction>(I)>>...};
    return functions[static_cast<int>(what)](operands);
  }
  (std::make_integer_sequence<int, function_units::instruction_count>{});
}

constexpr function_units::device this_device = {why_unsupported, description, capability,
                                                compare,         record,      exact_sum};

}  // namespace
}  // namespace samebits::cuda

/// device.cpp finds this function through a weak reference.
extern "C" const samebits::function_units::device* samebits_function_unit_device() {
  return &samebits::cuda::this_device;
}
