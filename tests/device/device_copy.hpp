// Device memory, and host memory of a view copied there and back, guarded on either side.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "samebits/core/format.hpp"
#include "samebits/view.hpp"

namespace samebits::support {

inline void check_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
  }
}

/// Bytes in device memory; none by default.
class device_bytes {
 public:
  device_bytes() = default;
  explicit device_bytes(std::size_t bytes) : size_(bytes) {
    if (bytes != 0) check_cuda(cudaMalloc(&data_, bytes), "cudaMalloc");
  }
  device_bytes(const void* host, std::size_t bytes) : device_bytes(bytes) {
    check_cuda(cudaMemcpy(data_, host, bytes, cudaMemcpyHostToDevice), "to the device");
  }
  device_bytes(device_bytes&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)) {}
  device_bytes& operator=(device_bytes&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    return *this;
  }
  ~device_bytes() { cudaFree(data_); }

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }
  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_);
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  void fill(int byte) {
    if (size_ != 0) check_cuda(cudaMemset(data_, byte, size_), "cudaMemset");
  }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Everything in a block, as an array on the host.
template <class T>
std::vector<T> contents_of(const device_bytes& block) {
  std::vector<T> host(block.size() / sizeof(T));
  check_cuda(cudaMemcpy(host.data(), block.data(), block.size(), cudaMemcpyDeviceToHost),
             "from the device");
  return host;
}

template <class T>
T downloaded(const T* device) {
  T value;
  check_cuda(cudaMemcpy(&value, device, sizeof(T), cudaMemcpyDeviceToHost), "from the device");
  return value;
}

/// A copy on the device of some bytes of the host, at the same distance from 16-byte borders.
class guarded_copy {
 public:
  /// The bytes that a view spans; none where it has no data.
  explicit guarded_copy(const const_matrix_view& v) : guarded_copy(v.data, span_bytes(v)) {}
  guarded_copy(const void* host, std::size_t bytes)
      : host_(const_cast<void*>(host)), bytes_(host == nullptr ? 0 : bytes) {
    if (host_ == nullptr) return;
    const std::size_t shift = reinterpret_cast<std::uintptr_t>(host_) % 16;
    const std::size_t size = bytes_ + 2 * margin + shift;
    check_cuda(cudaMalloc(&base_, size), "cudaMalloc");
    check_cuda(cudaMemset(base_, guard, size), "cudaMemset");
    data_ = static_cast<std::byte*>(base_) + margin + shift;
    check_cuda(cudaMemcpy(data_, host_, bytes_, cudaMemcpyHostToDevice), "copy to the device");
  }
  ~guarded_copy() { cudaFree(base_); }
  guarded_copy(const guarded_copy&) = delete;
  guarded_copy& operator=(const guarded_copy&) = delete;

  /// Null where the view had none.
  [[nodiscard]] void* data() const { return data_; }

  /// The view, of this memory.
  [[nodiscard]] matrix_view placed(matrix_view v) const {
    if (data_ == nullptr) return {};
    v.data = data_;
    v.space = memory_space::device;
    return v;
  }

  /// Throws std::runtime_error where a guard was written.
  void copy_back() const {
    if (data_ == nullptr) return;
    check_cuda(cudaMemcpy(host_, data_, bytes_, cudaMemcpyDeviceToHost), "copy from the device");
    for (const std::byte* edge : {data_ - margin, data_ + bytes_}) {
      std::array<unsigned char, margin> bytes{};
      check_cuda(cudaMemcpy(bytes.data(), edge, margin, cudaMemcpyDeviceToHost), "copy of guards");
      if (std::any_of(bytes.begin(), bytes.end(), [](unsigned char b) { return b != guard; })) {
        throw std::runtime_error("memory outside a view was written");
      }
    }
  }

 private:
  static constexpr int guard = 0xC3;
  static constexpr std::size_t margin = 64;  // bytes

  static std::size_t span_bytes(const const_matrix_view& v) {
    if (v.rows == 0 || v.cols == 0) return 0;
    const std::int64_t last = (v.rows - 1) * v.row_stride + (v.cols - 1) * v.col_stride;
    return static_cast<std::size_t>((last + 1) * storage_bytes(v.format));
  }

  void* host_;
  std::size_t bytes_;
  void* base_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace samebits::support
