// How a matrix lies in memory: shape, strides and alignment.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "engine/core/choices.hpp"

namespace samebits::support {

/// A matrix in memory: shape, strides in elements, and bytes before the first element.
struct array_layout {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 1;
  std::int64_t misalignment = 0;  ///< bytes, 0..7

  /// Elements from the first to behind the last; 0 if the shape is empty.
  [[nodiscard]] std::int64_t span() const;
  /// Number of an element in memory order.
  [[nodiscard]] std::int64_t at(std::int64_t row, std::int64_t col) const {
    return row * row_stride + col * col_stride;
  }
  /// The same of the i-th element in row-major order.
  [[nodiscard]] std::int64_t at(std::int64_t i) const { return at(i / cols, i % cols); }
  [[nodiscard]] bool is_dense() const {
    return row_stride == cols && col_stride == 1 && misalignment == 0;
  }
  /// Sets the shape; dense layouts stay dense.
  void resize(std::int64_t to_rows, std::int64_t to_cols);

  friend constexpr bool operator==(const array_layout&, const array_layout&) = default;
};

/// Rows behind each other, aligned.
inline array_layout dense_layout(std::int64_t rows, std::int64_t cols) {
  return {rows, cols, cols, 1, 0};
}

/// "[3, 5] strides 5, 1 elements, 0 bytes off".
std::ostream& operator<<(std::ostream& out, const array_layout& layout);

enum class array_side : std::uint8_t { read, written };

/// Strides of a shape: rows or columns next to each other, with gaps or without; an array that is
/// read may repeat a row or a column instead.
array_layout draw_layout(std::int64_t rows, std::int64_t cols, array_side which,
                         const word_source& next);

}  // namespace samebits::support
