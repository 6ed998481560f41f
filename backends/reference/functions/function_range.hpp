// Functions of a range of elements on host backends: loads and stores chunks of codes around a
// kernel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "backends/dispatch/calls/evaluate.hpp"
#include "backends/dispatch/element.hpp"
#include "backends/reference/cells.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"

namespace samebits::backends {

/// The first element of a row, and the bytes from one element to the next.
struct element_row {
  std::byte* data;
  std::int64_t step;
};

inline element_row row_of(const const_matrix_view& v, std::int64_t row, std::int64_t col) {
  // The caller stores only to rows of matrix_view.
  return {const_cast<std::byte*>(element_at(v, row, col)), v.col_stride * storage_bytes(v.format)};
}

/// Calls copy(step) with the bytes from one element to the next. They are a constant for neighbours
/// in memory, so that the compiler can use vectors.
template <class Code, class Copy>
void copy_elements(const element_row& row, const Copy& copy) {
  constexpr std::int64_t dense = sizeof(Code);
  if (row.step == dense) return copy(std::integral_constant<std::int64_t, dense>{});
  copy(row.step);
}

/// Loads `count` codes of a row, one per word.
inline void load_words(const const_matrix_view& v, std::int64_t row, std::int64_t col,
                       std::int64_t count, std::uint32_t* words) {
  const element_row from = row_of(v, row, col);
  with_code_of(v.format, [&]<class Code>(Code) {
    copy_elements<Code>(from, [&](auto step) {
      for (std::int64_t i = 0; i < count; ++i) {
        Code code;
        std::memcpy(&code, from.data + i * step, sizeof code);
        words[i] = code;
      }
    });
  });
}

inline void store_words(const const_matrix_view& v, std::int64_t row, std::int64_t col,
                        std::int64_t count, const std::uint32_t* words) {
  const element_row to = row_of(v, row, col);
  with_code_of(v.format, [&]<class Code>(Code) {
    copy_elements<Code>(to, [&](auto step) {
      for (std::int64_t i = 0; i < count; ++i) {
        const auto code = static_cast<Code>(words[i]);
        std::memcpy(to.data + i * step, &code, sizeof code);
      }
    });
  });
}

/// Writes one code to all elements.
inline void fill_words(const matrix_view& out, std::uint32_t code) {
  const std::vector<std::uint32_t> row(static_cast<std::size_t>(out.cols), code);
  for (std::int64_t i = 0; i < out.rows; ++i) store_words(out, i, 0, out.cols, row.data());
}

/// load_words() and store_words() of numbers: binary32 bits of a view in fp32, fp16 or bf16.
inline void load_numbers(const const_matrix_view& v, std::int64_t row, std::int64_t col,
                         std::int64_t count, std::uint32_t* numbers) {
  load_words(v, row, col, count, numbers);
  for (std::int64_t i = 0; i < count; ++i) {
    numbers[i] = numerics::torch_2_11::value_of(v.format, numbers[i]);
  }
}
/// Leaves the numbers' codes in `numbers`.
inline void store_numbers(const const_matrix_view& v, std::int64_t row, std::int64_t col,
                          std::int64_t count, std::uint32_t* numbers) {
  for (std::int64_t i = 0; i < count; ++i) {
    numbers[i] = numerics::torch_2_11::code_of(v.format, numbers[i]);
  }
  store_words(v, row, col, count, numbers);
}

/// Applies a call to a range of elements, chunk by chunk.
inline void function_range(const evaluate_call& call, element_range range, function_codes codes) {
  random_sequence random(call.random);
  function_chunk chunk;
  for_each_row_part(call.out.cols, range, function_chunk::size,
                    [&](std::int64_t row, std::int64_t col, std::int64_t count) {
                      load_words(call.in, row, col, count, chunk.x);
                      if (call.grad.data != nullptr)
                        load_words(call.grad, row, col, count, chunk.grad);
                      if (call.rule.rounding == rounding::stochastic) {
                        const std::uint64_t first = random_index(call.random, call.pitch, row, col);
                        for (std::int64_t i = 0; i < count; ++i) {
                          chunk.dither[i] =
                              random.dither<std::uint64_t>(first + static_cast<std::uint64_t>(i));
                        }
                      }
                      codes(call, chunk, static_cast<int>(count));
                      store_words(call.out, row, col, count, chunk.codes);
                    });
}

}  // namespace samebits::backends
