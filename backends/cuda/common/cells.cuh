// Matrices of codes in device memory, with any strides; and what a launch asks of a view.
#pragma once

#include <cstddef>
#include <cstdint>

#include "samebits/core/format.hpp"
#include "samebits/view.hpp"

namespace samebits::cuda {

/// A strided matrix of codes in device memory; data is null for one that a call lacks.
struct cells {
  std::byte* data;
  std::uint64_t row_bytes, col_bytes;

  __device__ __forceinline__ std::byte* at(std::uint64_t row, std::uint64_t col) const {
    return data + row * row_bytes + col * col_bytes;
  }
};

/// The matrix of a view. Kernels store only to those of results.
inline cells cells_of(const const_matrix_view& v) {
  const auto bytes = static_cast<std::uint64_t>(storage_bytes(v.format));
  return {static_cast<std::byte*>(const_cast<void*>(v.data)),
          static_cast<std::uint64_t>(v.row_stride) * bytes,
          static_cast<std::uint64_t>(v.col_stride) * bytes};
}

/// The number of elements of a view.
inline std::uint64_t size_of(const const_matrix_view& v) {
  return static_cast<std::uint64_t>(v.rows) * static_cast<std::uint64_t>(v.cols);
}

inline bool is_aligned(const void* p, std::uint64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(p) % bytes == 0;
}
/// Whether the elements of each row are contiguous.
inline bool has_dense_rows(const const_matrix_view& v) { return v.cols == 1 || v.col_stride == 1; }
/// Whether the view has no gaps, so that it counts as one row.
inline bool is_flat(const const_matrix_view& v) {
  return has_dense_rows(v) && (v.rows == 1 || v.row_stride == v.cols);
}

}  // namespace samebits::cuda
