// Queries of the CUDA runtime: the current device, the devices that reach an address, the device and
// the capture of a stream, and the architecture of the kernels that the current device runs.
#include "backends/cuda/common/runtime.hpp"

#include <cuda_runtime.h>

#include <array>
#include <atomic>

#include "backends/cuda/common/error.hpp"

namespace samebits::cuda {
namespace {

// An empty kernel that stands for all others when attributes are read: the build compiles all
// kernels for the same architectures.
__global__ void probe_kernel() {}

bool is_available() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error == cudaSuccess && count > 0;
}

int current_device() {
  int device = 0;
  check(cudaGetDevice(&device), "the current device");
  return device;
}

void make_current(int device) { check(cudaSetDevice(device), "cudaSetDevice"); }

/// Whether the device reads any host address, as with HMM and on Grace.
bool reaches_host_memory(int device) {
  int pageable = 0;
  check(cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, device),
        "attributes of a device");
  return pageable != 0;
}

/// Which devices can work on an address.
backends::address_memory memory_of(const void* address) {
  using kind = backends::address_memory::kind;
  cudaPointerAttributes attributes;
  check(cudaPointerGetAttributes(&attributes, address), "attributes of an address");
  switch (attributes.type) {
    case cudaMemoryTypeDevice: return {kind::device, attributes.device};
    case cudaMemoryTypeManaged: return {kind::shared, 0};
    case cudaMemoryTypeHost:
      // Page-locked memory that is not mapped has no address on a device.
      return {attributes.devicePointer == address ? kind::shared : kind::host, 0};
    default: return {reaches_host_memory(current_device()) ? kind::shared : kind::host, 0};
  }
}

bool is_capturing(void* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status);
  if (error == cudaErrorStreamCaptureImplicit) {  // the default stream during a capture
    (void)cudaGetLastError();
    return true;
  }
  check(error, "capture status of a stream");
  return status != cudaStreamCaptureStatusNone;
}

/// The device of a stream. no_device for default streams, streams under capture, and old runtimes.
int device_of_stream(void* stream) {
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
    return backends::no_device;
  }
#if CUDART_VERSION >= 12080
  if (is_capturing(stream)) return backends::no_device;  // the query would end the capture
  int device = backends::no_device;
  check(cudaStreamGetDevice(static_cast<cudaStream_t>(stream), &device), "the stream's device");
  return device;
#else
  return backends::no_device;
#endif
}

/// No loaded kernels, for the reason `what`. Clears the runtime's last error.
loaded_code missing(const std::string& what, cudaError_t error) {
  (void)cudaGetLastError();
  return {0, 0, what + ": " + cudaGetErrorString(error)};
}

/// Asks the runtime for the compute capabilities of the device and of its loaded kernels.
loaded_code ask_current_device(int device) {
  int major = 0, minor = 0;
  for (auto [attribute, value] : {std::pair{cudaDevAttrComputeCapabilityMajor, &major},
                                  std::pair{cudaDevAttrComputeCapabilityMinor, &minor}}) {
    if (const cudaError_t e = cudaDeviceGetAttribute(value, attribute, device); e != cudaSuccess) {
      return missing("the GPU does not answer", e);
    }
  }
  cudaFuncAttributes attributes;
  if (const cudaError_t e = cudaFuncGetAttributes(&attributes, probe_kernel); e != cudaSuccess) {
    return missing("this build has no kernels for a GPU of compute capability " +
                       std::to_string(major) + "." + std::to_string(minor),
                   e);
  }
  // ptxVersion is the __CUDA_ARCH__ that kernels were compiled with, for machine code as well.
  return {10 * major + minor, attributes.ptxVersion, ""};
}

}  // namespace

loaded_code code_of_current_device() {
  int device = 0;
  if (const cudaError_t e = cudaGetDevice(&device); e != cudaSuccess) {
    return missing(
        e == cudaErrorInsufficientDriver ? "no NVIDIA driver, or one too old" : "no usable GPU", e);
  }
  // known[device] is capability * 2^16 + compiled_for, or 0 before the first call. Neither number
  // changes while the process runs.
  constexpr std::size_t max_devices = 64;
  static std::array<std::atomic<int>, max_devices> known = {};
  const auto at = static_cast<std::size_t>(device);
  if (at < max_devices) {
    if (const int both = known[at].load(); both != 0) return {both >> 16, both & 0xFFFF, ""};
  }
  loaded_code code = ask_current_device(device);
  if (at < max_devices && code.reason.empty())
    known[at] = code.capability << 16 | code.compiled_for;
  return code;
}

int compiled_capability() {
  const loaded_code code = code_of_current_device();
  if (!code.reason.empty()) throw cuda_error(code.reason, cudaErrorNoKernelImageForDevice);
  return code.compiled_for;
}

const backends::device_runtime runtime = {
    .is_available = is_available,
    .current_device = current_device,
    .make_current = make_current,
    .memory_of = memory_of,
    .device_of_stream = device_of_stream,
    .is_capturing = is_capturing,
};

}  // namespace samebits::cuda
