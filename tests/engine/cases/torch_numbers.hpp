// Tensors of PyTorch's operators as cases have them: formats, elements as binary32 numbers, random
// numbers, layouts.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/core/problem.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"

namespace samebits::support {

inline constexpr format_id torch_formats[] = {format_id::fp32, format_id::fp16, format_id::bf16};

/// An element as a binary32 number.
inline std::uint32_t value_at(const const_matrix_view& v, std::int64_t row, std::int64_t col) {
  return numerics::torch_2_11::value_of(v.format, static_cast<std::uint32_t>(code_at(v, row, col)));
}
/// Sets an element to a binary32 number, rounded to the view's format.
inline void put_value(const matrix_view& v, std::int64_t row, std::int64_t col, std::uint32_t x) {
  put_code(v, row, col, numerics::torch_2_11::code_of(v.format, x));
}

/// Powers of two between which numbers lie; `rarity`: one of so many is special. 0: none.
struct number_kind {
  std::uint64_t rarity = 0;
  int low = -7, high = 3;
};
/// Numbers of both signs. Special ones are zeros, subnormal and large numbers, Inf, NaN, any bits.
strided_buffer numbers(format_id format, const array_layout& layout, const word_source& next,
                       const number_kind& kind = {});

/// Rows of numbers between -8 and 8; among them rows of large and of equal numbers, of zeros of
/// both signs, and rows with an Inf, a NaN, and -Inf everywhere but in one place.
strided_buffer rows_of(format_id format, const array_layout& layout, const word_source& next);

/// The elements of a row as binary32 numbers.
using words = std::vector<std::uint32_t>;
words row_of(const matrix_view& v, std::int64_t row);
/// Sets the elements of a row to binary32 numbers, rounded to the view's format.
void put_row(const matrix_view& v, std::int64_t row, const words& x);

/// Widths of rows to 40, and at which the order of sums over a row changes.
std::vector<std::int64_t> row_widths(format_id format);

/// A layout that is written: dense in half of the cases.
array_layout draw_written(std::int64_t rows, std::int64_t cols, const word_source& next);

/// A buffer that the call alone sets; absent unless the case has it.
case_buffer result_buffer(const char* name, format_id format, const array_layout& layout,
                          bool has_it = true);

}  // namespace samebits::support
