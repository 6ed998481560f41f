// Table of results: functions of fp16 and bf16 numbers by one look-up an element.
//
// There are 65,536 operands. A call on many more elements computes the result of each operand once.
// Every call of exact_by_table() fills a table of its own, so threads share nothing. GPUs keep their
// tables: backends/cuda/functions/exact/exact_table.cu.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "backends/dispatch/calls/evaluate.hpp"
#include "backends/dispatch/calls/exact_function.hpp"

namespace samebits::backends {

inline constexpr int table_size = 65536;
/// Elements from which on filling and reading a table costs less than computing all results.
inline constexpr std::int64_t least_table_elements = std::int64_t{1} << 19;

/// Whether a table serves the call: one result per 16-bit operand, and enough elements.
inline bool is_for_table(const exact_call& call, element_range range) {
  return spec_of(call.in.format).storage_bits == 16 && call.grad.data == nullptr &&
         call.rule.rounding == rounding::nearest_even &&
         range.end - range.begin >= least_table_elements;
}

/// Fills the table with the result of every operand.
template <class Code>
void fill_table(const exact_call& call, exact_codes codes, Code* table) {
  exact_chunk chunk;
  for (int first = 0; first < table_size; first += exact_chunk::size) {
    for (int i = 0; i < exact_chunk::size; ++i) {
      chunk.x[i] = static_cast<std::uint32_t>(first + i);
    }
    codes(call, chunk, exact_chunk::size);
    for (int i = 0; i < exact_chunk::size; ++i) {
      table[first + i] = static_cast<Code>(chunk.codes[i]);
    }
  }
}

/// Looks up `count` elements of a row.
template <class Code>
void look_up(const element_row& in, const element_row& out, std::int64_t count, const Code* table) {
  copy_elements<std::uint16_t>(in, [&](auto in_step) {
    copy_elements<Code>(out, [&](auto out_step) {
      for (std::int64_t i = 0; i < count; ++i) {
        std::uint16_t operand = 0;
        std::memcpy(&operand, in.data + i * in_step, sizeof operand);
        std::memcpy(out.data + i * out_step, &table[operand], sizeof(Code));
      }
    });
  });
}

/// Applies the call to a range of elements by a table. Returns false and writes nothing if there is
/// no memory for the table.
template <class Code>
bool exact_by_table(const exact_call& call, element_range range, exact_codes codes) {
  const std::unique_ptr<Code[]> table(new (std::nothrow) Code[table_size]);
  if (table == nullptr) return false;
  fill_table(call, codes, table.get());
  for (std::int64_t at = range.begin; at < range.end;) {
    const std::int64_t row = at / call.out.cols;
    const std::int64_t col = at % call.out.cols;
    const std::int64_t count = std::min(range.end - at, call.out.cols - col);
    look_up(row_of(call.in, row, col), row_of(call.out, row, col), count, table.get());
    at += count;
  }
  return true;
}

inline bool exact_by_table(const exact_call& call, element_range range, exact_codes codes) {
  switch (spec_of(call.out.format).storage_bits) {
    case 8: return exact_by_table<std::uint8_t>(call, range, codes);
    case 16: return exact_by_table<std::uint16_t>(call, range, codes);
    default: return exact_by_table<std::uint32_t>(call, range, codes);
  }
}

}  // namespace samebits::backends
