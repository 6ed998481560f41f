// Memory of the current device for callers without a stream: synchronous calls on the default
// stream. synchronize() waits for all streams.
#include <cuda_runtime.h>

#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/error.hpp"

namespace samebits::cuda {
namespace {

void* allocate(std::size_t bytes) {
  void* device = nullptr;
  check(cudaMalloc(&device, bytes), "cudaMalloc");
  return device;
}

void release(void* device) noexcept {
  if (cudaFree(device) != cudaSuccess) (void)cudaGetLastError();
}

// cudaMemcpy from pageable memory may return when the bytes are in a staging buffer, before they
// are on the device. upload() therefore waits: kernels of any stream can then read the bytes.
void upload(void* device, const void* host, std::size_t bytes) {
  check(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "copy to the device");
  check(cudaStreamSynchronize(nullptr), "copy to the device");
}

void download(void* host, const void* device, std::size_t bytes) {
  check(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost), "copy from the device");
}

void fill(void* device, std::byte value, std::size_t bytes) {
  check(cudaMemset(device, static_cast<int>(value), bytes), "cudaMemset");
  check(cudaStreamSynchronize(nullptr), "cudaMemset");
}

// cudaStreamSynchronize(nullptr) does not wait for streams created with cudaStreamNonBlocking.
void synchronize() { check(cudaDeviceSynchronize(), "work on the device"); }

}  // namespace

const backends::device_memory memory = {
    .allocate = allocate,
    .release = release,
    .upload = upload,
    .download = download,
    .fill = fill,
    .synchronize = synchronize,
};

}  // namespace samebits::cuda
