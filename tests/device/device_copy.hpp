// Host memory of a view copied to the device and back, guarded on either side.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "samebits/core/format.hpp"
#include "samebits/view.hpp"

namespace samebits::support {

inline void check_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
  }
}

/// Whether a copy has guard bytes on either side, or ends with its allocation, where
/// compute-sanitizer sees a read behind it.
enum class edges : std::uint8_t { guarded, exact };

/// A copy on the device of some bytes of the host, at the same distance from 16-byte borders.
class guarded_copy {
 public:
  /// The bytes that a view spans; none where it has no data.
  explicit guarded_copy(const const_matrix_view& v, edges kind = edges::guarded)
      : guarded_copy(v.data, span_bytes(v), kind) {}
  guarded_copy(const void* host, std::size_t bytes, edges kind = edges::guarded)
      : host_(const_cast<void*>(host)),
        bytes_(host == nullptr ? 0 : bytes),
        margin_(kind == edges::guarded ? max_margin : 0) {
    if (host_ == nullptr) return;
    const std::size_t shift = reinterpret_cast<std::uintptr_t>(host_) % 16;
    const std::size_t size = std::max<std::size_t>(1, bytes_ + 2 * margin_ + shift);
    check_cuda(cudaMalloc(&base_, size), "cudaMalloc");
    check_cuda(cudaMemset(base_, guard, size), "cudaMemset");
    data_ = static_cast<std::byte*>(base_) + margin_ + shift;
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
    if (margin_ == 0) return;
    for (const std::byte* edge : {data_ - margin_, data_ + bytes_}) {
      std::array<unsigned char, max_margin> bytes{};
      check_cuda(cudaMemcpy(bytes.data(), edge, margin_, cudaMemcpyDeviceToHost), "copy of guards");
      if (std::any_of(bytes.begin(), bytes.end(), [](unsigned char b) { return b != guard; })) {
        throw std::runtime_error("memory outside a view was written");
      }
    }
  }

 private:
  static constexpr int guard = 0xC3;
  static constexpr std::size_t max_margin = 64;  // bytes

  static std::size_t span_bytes(const const_matrix_view& v) {
    if (v.rows == 0 || v.cols == 0) return 0;
    const std::int64_t last = (v.rows - 1) * v.row_stride + (v.cols - 1) * v.col_stride;
    return static_cast<std::size_t>((last + 1) * storage_bytes(v.format));
  }

  void* host_;
  std::size_t bytes_;
  std::size_t margin_;
  void* base_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace samebits::support
