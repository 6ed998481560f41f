// Elements of views in host memory: addresses, parts of views, parts of rows. Files compiled for one
// instruction set include this one. What could have the same name in two of them is inlined by force: the
// linker would keep one, perhaps with instructions that a machine lacks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/backend.hpp"
#include "samebits/core/config.hpp"

namespace samebits::backends {

/// The address of element (row, col).
SAMEBITS_INLINE const std::byte* element_at(const const_matrix_view& v, std::int64_t row,
                                            std::int64_t col) {
  return static_cast<const std::byte*>(v.data) +
         (row * v.row_stride + col * v.col_stride) * storage_bytes(v.format);
}
SAMEBITS_INLINE std::byte* element_at(const matrix_view& v, std::int64_t row, std::int64_t col) {
  return static_cast<std::byte*>(v.data) +
         (row * v.row_stride + col * v.col_stride) * storage_bytes(v.format);
}

/// The index of the random bits of element (row, col); `pitch` is resolved.
SAMEBITS_INLINE std::uint64_t random_index(const random_stream& random, std::uint64_t pitch,
                                           std::int64_t row, std::int64_t col) {
  return random.offset + static_cast<std::uint64_t>(row) * pitch + static_cast<std::uint64_t>(col);
}

/// The elements [row, row + rows) x [col, col + cols) of a view.
template <class View>
SAMEBITS_INLINE View part_of(View v, std::int64_t row, std::int64_t col, std::int64_t rows,
                             std::int64_t cols) {
  v.data = element_at(v, row, col);
  v.rows = rows;
  v.cols = cols;
  return v;
}

/// Calls f(row, col, count), in order, for the parts in each row of a range of elements of a matrix, of
/// at most `max_count` elements.
template <class Function>
void for_each_row_part(std::int64_t cols, element_range range, std::int64_t max_count,
                       const Function& f) {
  if (range.begin == range.end) return;  // perhaps of a matrix without columns
  std::int64_t row = range.begin / cols;
  std::int64_t col = range.begin % cols;
  for (std::int64_t left = range.end - range.begin; left > 0;) {
    std::int64_t count = cols - col < left ? cols - col : left;
    if (max_count < count) count = max_count;
    f(row, col, count);
    left -= count;
    col += count;
    if (col < cols) continue;
    col = 0;
    ++row;
  }
}
template <class Function>
void for_each_row_part(std::int64_t cols, element_range range, const Function& f) {
  for_each_row_part(cols, range, cols, f);
}

}  // namespace samebits::backends
