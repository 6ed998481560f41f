// The CUDA backends' entries, and whether this machine can run them.
#include <cuda_runtime.h>

#include <string>

#include "backends/cuda/compute.hpp"
#include "backends/cuda/cuda.hpp"
#include "backends/cuda/error.hpp"
#include "backends/cuda/gradient_reduction.hpp"
#include "backends/cuda/plan.hpp"
#include "backends/cuda/quantize.hpp"
#include "backends/cuda/reductions.hpp"
#include "backends/self_test.hpp"

namespace samebits::cuda {
namespace {

__global__ void probe_kernel() {}

/// The current device's compute capability as 10 * major + minor, or the reason there is none.
struct device_state {
  int capability;
  std::string reason;
};

device_state current_device() {
  const auto failed = [](const std::string& what, cudaError_t error) {
    (void)cudaGetLastError();
    return device_state{0, what + ": " + cudaGetErrorString(error)};
  };
  int count = 0;
  if (const cudaError_t e = cudaGetDeviceCount(&count); e != cudaSuccess) {
    return failed(
        e == cudaErrorInsufficientDriver ? "no NVIDIA driver, or one too old" : "no usable GPU", e);
  }
  int device = 0, major = 0, minor = 0;
  if (const cudaError_t e = cudaGetDevice(&device); e != cudaSuccess) return failed("no GPU", e);
  for (auto [attribute, value] : {std::pair{cudaDevAttrComputeCapabilityMajor, &major},
                                  std::pair{cudaDevAttrComputeCapabilityMinor, &minor}}) {
    if (const cudaError_t e = cudaDeviceGetAttribute(value, attribute, device); e != cudaSuccess) {
      return failed("the GPU does not answer", e);
    }
  }
  cudaFuncAttributes attributes;
  if (const cudaError_t e = cudaFuncGetAttributes(&attributes, probe_kernel); e != cudaSuccess) {
    return failed("this build has no kernels for a GPU of compute capability " +
                      std::to_string(major) + "." + std::to_string(minor),
                  e);
  }
  return {10 * major + minor, ""};
}

std::string why_not_emulated() { return current_device().reason; }

std::string why_not_native() {
  const device_state d = current_device();
  if (!d.reason.empty()) return d.reason;
  return d.capability >= 89 ? "" : "FP8 instructions need compute capability 8.9";
}

// One for both backends: their kernels are compiled with the same flags.
constinit backends::self_test_entry self_test = {probes_on_device, current_device_number,
                                                 is_capturing};

}  // namespace

const backends::backend emulated = {"cuda-emulated",
                                    "CUDA, the definition in a kernel",
                                    memory_space::device,
                                    why_not_emulated,
                                    backends::has_everything,
                                    nullptr,
                                    launch_emulated,
                                    &self_test,
                                    &memory,
                                    &emulated_quantizer,
                                    &emulated_calculator,
                                    nullptr,
                                    &emulated_plans,
                                    &emulated_reducer,
                                    nullptr,
                                    &emulated_ranks};

const backends::backend native = {"cuda-native",
                                  "CUDA, hardware conversions where proved equal",
                                  memory_space::device,
                                  why_not_native,
                                  native_has,
                                  nullptr,
                                  launch_native,
                                  &self_test,
                                  &memory,
                                  &native_quantizer,
                                  &native_calculator,
                                  nullptr,
                                  &native_plans,
                                  &native_reducer,
                                  nullptr,
                                  &native_ranks};

namespace {

const backends::backend* const list[] = {&emulated, &native, nullptr};

}  // namespace
}  // namespace samebits::cuda

/// Found by the registry of the core library through a weak reference.
extern "C" const samebits::backends::backend* const* samebits_cuda_backends() {
  return samebits::cuda::list;
}
