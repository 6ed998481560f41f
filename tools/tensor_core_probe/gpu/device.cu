// The CUDA device of the tensor core check: its description, and the run of one job.
#include <cuda_runtime.h>

#include <algorithm>
#include <string>

#include "gpu_probe/current_gpu.hpp"
#include "tensor_core_probe/device.hpp"
#include "tensor_core_probe/gpu/kernels.cuh"

namespace samebits::cuda {
namespace {

using backends::tensor_cores::difference;
using backends::tensor_cores::job;
using backends::tensor_cores::outcome;

/// An empty kernel: its attributes tell whether this build has kernels for the GPU.
__global__ void tensor_core_probe() {}

std::string why_unsupported() { return why_not_runnable(tensor_core_probe); }

std::string name() { return gpu_properties().name; }

/// Runs a job on the current device and waits for the result.
outcome run(const job& j) {
  const auto lines = static_cast<std::size_t>(rows_of(j.what)) * j.tiles;
  const device_array<std::uint32_t> a(j.a, lines * line_words);
  const device_array<std::uint32_t> b(j.b, std::size_t{j.tiles} * tile_columns * line_words);
  const device_array<std::uint32_t> c(j.c, lines * tile_columns);
  const device_array<std::uint32_t> own(lines * tile_columns);
  const device_array<unsigned long long> differing(1);
  const device_array<unsigned int> found(1);
  const device_array<difference> first(backends::tensor_cores::max_differences);
  const device_job on_device = {
      j.rule,      j.tiles,          backends::tensor_cores::partners_of(j.tiles),
      a.data(),    b.data(),         c.data(),
      own.data(),  differing.data(), found.data(),
      first.data()};
  const tensor_launcher launch = is_wgmma(j.what) ? find_wgmma(j.what) : find_mma(j.what);
  launch(on_device, 8 * gpu_attribute(cudaDevAttrMultiProcessorCount));
  check(cudaDeviceSynchronize(), "tensor core kernel");
  const std::uint64_t wrong = differing.read()[0];
  const auto shown = std::min<std::uint64_t>(wrong, backends::tensor_cores::max_differences);
  return {own.read(), wrong, first.read(static_cast<std::size_t>(shown))};
}

constexpr backends::tensor_cores::device this_device = {why_unsupported, name, gpu_capability, run};

}  // namespace
}  // namespace samebits::cuda

/// The core library finds this function through a weak reference.
extern "C" const samebits::backends::tensor_cores::device* samebits_tensor_core_device() {
  return &samebits::cuda::this_device;
}
