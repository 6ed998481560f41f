// The CUDA device of the tensor core check: its description, and the run of one job.
#include <cuda_runtime.h>

#include <algorithm>
#include <string>
#include <utility>

#include "backends/cuda/common/launch_kernel.hpp"
#include "gpu_probe/current_gpu.hpp"
#include "tensor_core_probe/gpu/multiply.cuh"

namespace samebits::cuda {
namespace {

using backends::tensor_cores::difference;
using backends::tensor_cores::max_differences;
using backends::tensor_cores::outcome;

/// An empty kernel: its attributes tell whether this build has kernels for the GPU.
__global__ void tensor_core_probe() {}

std::string why_unsupported() { return why_not_runnable(tensor_core_probe); }

std::string name() { return gpu_properties().name; }

using multiplication = void (*)(job j, std::uint32_t offset, std::uint32_t* d);

/// The kernel of an instruction.
multiplication kernel_of(instruction what) {
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    static constexpr multiplication kernels[] = {multiply_kernel<static_cast<instruction>(I)>...};
    return kernels[static_cast<int>(what)];
  }
  (std::make_integer_sequence<int, backends::tensor_cores::instruction_count>());
}

/// Compares results with those of the rule. One thread per result.
/// @param differing  counts the differences
/// @param first  the first max_differences of them
__global__ void compare_kernel(job j, std::uint32_t offset, const std::uint32_t* d,
                               unsigned long long* differing, difference* first) {
  const std::size_t index = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (index >= results_of(j)) return;
  const std::size_t tile = index / static_cast<std::size_t>(rows_of(j.what) * tile_columns);
  const difference found = {{index, (tile + offset) % j.tiles}, d[index], 0};
  const auto operands = decoded(j.rule, a_line(j, found.at), b_line(j, found.at));
  const std::uint32_t expected = result_of(j.rule, operands, j.c[index]);
  if (found.got == expected) return;
  const unsigned long long slot = atomicAdd(differing, 1ull);
  if (slot < max_differences) first[slot] = {found.at, found.got, expected};
}

/// Runs a job on the current device and waits for the result.
outcome run(const job& j) {
  const std::size_t results = results_of(j);
  const device_array<std::uint32_t> a(j.a, results / tile_columns * line_words);
  const device_array<std::uint32_t> b(j.b, std::size_t{j.tiles} * tile_columns * line_words);
  const device_array<std::uint32_t> c(j.c, results);
  const device_array<std::uint32_t> d(results);
  const device_array<unsigned long long> differing(1);
  const device_array<difference> first(max_differences);
  const job on_device = {j.what, j.rule, j.tiles, a.data(), b.data(), c.data()};
  outcome found{};
  for (std::uint32_t offset = 0; offset < backends::tensor_cores::partners_of(j.tiles); ++offset) {
    launch_kernel("tensor core kernel", kernel_of(j.what), j.tiles,
                  static_cast<unsigned>(2 * rows_of(j.what)), 0, nullptr, on_device, offset,
                  d.data());
    constexpr unsigned threads = 128;
    launch_kernel("compare_kernel", compare_kernel, grid_for(results, threads, results), threads, 0,
                  nullptr, on_device, offset, d.data(), differing.data(), first.data());
    if (offset == 0) found.own = d.read();
  }
  check(cudaDeviceSynchronize(), "tensor core kernel");
  found.differing = differing.read()[0];
  found.first = first.read(std::min<std::uint64_t>(found.differing, max_differences));
  return found;
}

constexpr backends::tensor_cores::device this_device = {why_unsupported, name, gpu_capability, run};

}  // namespace
}  // namespace samebits::cuda

/// check.cpp finds this function through a weak reference.
extern "C" const samebits::backends::tensor_cores::device* samebits_tensor_core_device() {
  return &samebits::cuda::this_device;
}
