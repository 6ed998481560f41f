// check_conversion for CUDA kernels. Header-only: include this header in a .cu file, or in a C++
// file that finds the CUDA headers.
//
//   const auto result = samebits::testkit::check_conversion(
//       {.from = samebits::format_id::fp32, .to = samebits::format_id::e4m3},
//       [](const float* in, std::uint8_t* out, std::int64_t n, cudaStream_t stream) {
//         if (n > 0) my_kernel<<<(n + 255) / 256, 256, 0, stream>>>(in, out, n);
//       });
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>

#include "samebits/error.hpp"
#include "samebits/testkit/conversion.hpp"

namespace samebits::testkit {
namespace detail {

inline void check_cuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();
  throw cuda_error(
      std::string(what) + ": " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error),
      static_cast<int>(error));
}

/// Device memory that grows on demand and is reused.
class device_memory {
 public:
  device_memory() = default;
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;
  ~device_memory() { cudaFree(data_); }

  /// Returns at least `size` bytes of device memory, aligned to 256 bytes.
  std::byte* reserve(std::size_t size) {
    if (size > size_) {
      check_cuda(cudaFree(data_), "cudaFree");
      data_ = nullptr;
      size_ = 0;
      check_cuda(cudaMalloc(&data_, size), "cudaMalloc");
      size_ = size;
    }
    return static_cast<std::byte*>(data_);
  }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Owns a CUDA stream.
class device_stream {
 public:
  device_stream() { check_cuda(cudaStreamCreate(&stream_), "cudaStreamCreate"); }
  device_stream(const device_stream&) = delete;
  device_stream& operator=(const device_stream&) = delete;
  ~device_stream() { cudaStreamDestroy(stream_); }
  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

template <class T>
struct launcher_signature;
template <class In, class Out>
struct launcher_signature<std::function<void(const In*, Out*, std::int64_t, cudaStream_t)>> {
  using in = In;
  using out = Out;
};

}  // namespace detail

/// A callable void(const In*, Out*, std::int64_t n, cudaStream_t) with fixed argument types.
template <class Function>
concept cuda_launcher = requires {
  typename detail::launcher_signature<detail::signature_of<Function>>::in;
};

/// Calls check_raw() with a kernel launcher. Guard bytes lie around both arrays, and each batch is
/// one launch.
///
/// @param conversion  formats, rule and random stream
/// @param launcher  enqueues the kernel on the stream; both pointers are device memory
/// @param effort  amount of tests
/// @returns the result; errors of the launch and of the kernel are failures of the check
/// @throws cuda_error if there is no usable device.
template <cuda_launcher Launcher>
check_result check_conversion(const conversion_under_test& conversion, Launcher launcher,
                              const check_effort& effort = {}) {
  using signature = detail::launcher_signature<detail::signature_of<Launcher>>;
  using in = typename signature::in;
  using out = typename signature::out;
  static_assert(std::is_trivially_copyable_v<in> && std::is_trivially_copyable_v<out>);
  const detail::device_stream stream;
  detail::device_memory in_memory;
  detail::device_memory out_memory;
  const auto call = [&](const raw_call& c) {
    using detail::check_cuda;
    std::byte* const from = in_memory.reserve(c.in_memory.size());
    std::byte* const to = out_memory.reserve(c.out_memory.size());
    const auto copy = [&](void* target, const void* source, std::size_t bytes,
                          cudaMemcpyKind kind) {
      check_cuda(cudaMemcpyAsync(target, source, bytes, kind, stream.get()), "cudaMemcpyAsync");
    };
    copy(from, c.in_memory.data(), c.in_memory.size(), cudaMemcpyHostToDevice);
    copy(to, c.out_memory.data(), c.out_memory.size(), cudaMemcpyHostToDevice);
    launcher(reinterpret_cast<const in*>(from + c.in_at), reinterpret_cast<out*>(to + c.out_at),
             c.count, stream.get());
    check_cuda(cudaGetLastError(), "the launch");
    copy(c.in_memory.data(), from, c.in_memory.size(), cudaMemcpyDeviceToHost);
    copy(c.out_memory.data(), to, c.out_memory.size(), cudaMemcpyDeviceToHost);
    check_cuda(cudaStreamSynchronize(stream.get()), "the kernel");
  };
  return check_raw(conversion, {call, sizeof(in), sizeof(out)}, effort);
}

}  // namespace samebits::testkit
