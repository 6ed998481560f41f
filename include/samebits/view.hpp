// Views: non-owning typed matrices of codes, the parameters of every array function.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "samebits/backend.hpp"
#include "samebits/core/format.hpp"
#include "samebits/types.hpp"

namespace samebits {

/// A read-only matrix [rows, cols] of codes of one format.
///
/// Element (r, c) lies (r * row_stride + c * col_stride) elements of storage_bytes(format) behind
/// `data`. No alignment is required. Strides are >= 0; a stride of 0 repeats elements. A size may
/// be 0; then `data` may be null.
struct const_matrix_view {
  const void* data = nullptr;
  format_id format = format_id::fp32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 1;
  memory_space space = memory_space::host;
};

/// A writable matrix [rows, cols] of codes of one format, laid out as a const_matrix_view. No two
/// elements may share memory.
struct matrix_view {
  void* data = nullptr;
  format_id format = format_id::fp32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 1;
  memory_space space = memory_space::host;

  // NOLINTNEXTLINE(google-explicit-constructor): a writable view is also readable
  operator const_matrix_view() const {
    return {data, format, rows, cols, row_stride, col_stride, space};
  }
};

namespace detail {
template <class T>
using view_for = std::conditional_t<std::is_const_v<T>, const_matrix_view, matrix_view>;

// Matrix types with strides have an overload of view_of of their own (samebits/eigen.hpp).
template <class T>
concept has_strides = requires(const T& m) {
  m.outerStride();
};

// A contiguous range: any type that std::span accepts. <ranges> would triple the compile time of
// this header.
template <class Range>
concept contiguous = requires(Range& range) {
  std::span(range);
};
template <contiguous Range>
using element_of = typename decltype(std::span(std::declval<Range&>()))::value_type;

// True unless a view of Range would dangle. A temporary that owns its elements, such as a returned
// vector, would leave a dangling view. Spans and other borrowed ranges own nothing.
template <class Range>
concept outlives_the_call = std::is_lvalue_reference_v<Range> ||
    std::ranges::enable_borrowed_range<std::remove_cvref_t<Range>>;
}  // namespace detail

/// Returns a view of a matrix [rows, cols] of float, double or value types in host memory; rows
/// start row_stride elements apart.
template <class T>
requires element<std::remove_const_t<T>> detail::view_for<T> view_of(T* data, std::int64_t rows,
                                                                     std::int64_t cols,
                                                                     std::int64_t row_stride) {
  return {data,
          format_of<std::remove_const_t<T>>::value,
          rows,
          cols,
          row_stride,
          1,
          memory_space::host};
}

/// Returns a view of a dense matrix [rows, cols] in host memory.
template <class T>
requires element<std::remove_const_t<T>> detail::view_for<T> view_of(T* data, std::int64_t rows,
                                                                     std::int64_t cols) {
  return view_of(data, rows, cols, cols);
}

/// Returns a view of a contiguous range as one row [1, size]. Temporaries that own their elements
/// do not compile.
template <detail::contiguous Range>
requires(element<detail::element_of<Range>> && !detail::has_strides<Range> &&
         detail::outlives_the_call<Range>) auto view_of(Range&& range) {
  std::span s(range);
  return view_of(s.data(), 1, static_cast<std::int64_t>(s.size()));
}

/// Returns a view of a dense matrix [rows, cols] of codes of any format in host memory.
inline const_matrix_view view_of_codes(format_id format, const void* data, std::int64_t rows,
                                       std::int64_t cols) {
  return {data, format, rows, cols, cols, 1, memory_space::host};
}
inline matrix_view view_of_codes(format_id format, void* data, std::int64_t rows,
                                 std::int64_t cols) {
  return {data, format, rows, cols, cols, 1, memory_space::host};
}

/// Returns a view of the transpose: the same elements with rows and columns exchanged.
inline const_matrix_view transposed(const_matrix_view v) {
  return {v.data, v.format, v.cols, v.rows, v.col_stride, v.row_stride, v.space};
}
inline matrix_view transposed(matrix_view v) {
  return {v.data, v.format, v.cols, v.rows, v.col_stride, v.row_stride, v.space};
}

/// Returns the same view with data in device memory: kernels read the pointer, the host does not.
inline const_matrix_view on_device(const_matrix_view v) {
  v.space = memory_space::device;
  return v;
}
inline matrix_view on_device(matrix_view v) {
  v.space = memory_space::device;
  return v;
}

}  // namespace samebits
