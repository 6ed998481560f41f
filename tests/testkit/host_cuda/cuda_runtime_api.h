// A fake CUDA runtime whose device is the host: the calls that samebits/testkit/cuda.hpp makes,
// allocation counts, and errors on demand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>

enum cudaError_t { cudaSuccess, cudaErrorLaunchFailure = 719 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
using cudaStream_t = struct host_stream*;

struct host_device {
  std::set<void*> blocks;  ///< allocated blocks
  int streams = 0;         ///< streams that are not destroyed
  int copies = 0;
  cudaError_t launch_error = cudaSuccess;  ///< result of the next cudaGetLastError
  cudaError_t stream_error = cudaSuccess;  ///< result of cudaStreamCreate
};
inline host_device the_device;

inline cudaError_t cudaMalloc(void** pointer, std::size_t size) {
  *pointer = std::aligned_alloc(256, (size + 255) / 256 * 256);
  the_device.blocks.insert(*pointer);
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* pointer) {
  the_device.blocks.erase(pointer);
  std::free(pointer);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind,
                                   cudaStream_t) {
  std::memcpy(to, from, size);
  ++the_device.copies;
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  if (the_device.stream_error != cudaSuccess) return the_device.stream_error;
  *stream = reinterpret_cast<cudaStream_t>(&the_device);
  ++the_device.streams;
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t) {
  --the_device.streams;
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaGetLastError() {
  const cudaError_t error = the_device.launch_error;
  the_device.launch_error = cudaSuccess;
  return error;
}
inline const char* cudaGetErrorName(cudaError_t) { return "cudaErrorLaunchFailure"; }
inline const char* cudaGetErrorString(cudaError_t) { return "unspecified launch failure"; }
