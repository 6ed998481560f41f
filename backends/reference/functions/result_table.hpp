// Table of results: functions of fp16 and bf16 numbers by one look-up an element.
//
// There are 65,536 operands. A call on many more elements computes the result of each operand once.
// GPUs keep their tables: backends/cuda/functions/result_table.cu.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "backends/dispatch/calls/evaluate.hpp"
#include "backends/reference/functions/function_range.hpp"
#include "backends/threads/parts.hpp"

namespace samebits::backends {

inline constexpr int table_size = 65536;
/// Elements from which on filling and reading a table costs less than computing all results.
inline constexpr std::int64_t least_table_elements = std::int64_t{1} << 19;

/// Whether a table serves the call: one result per 16-bit operand, and enough elements.
inline bool is_for_table(const evaluate_call& call) {
  return spec_of(call.in.format).storage_bits == 16 && call.grad.data == nullptr &&
         call.rule.rounding == rounding::nearest_even &&
         call.out.rows * call.out.cols >= least_table_elements;
}

/// Fills the table with the result of every operand, on threads.
template <class Code>
void fill_table(const evaluate_call& call, const executor& where, function_codes codes,
                kernel_scope scope, Code* table) {
  const auto fill = [&](element_range operands) {
    function_chunk chunk;
    for (std::int64_t first = operands.begin; first < operands.end;) {
      const std::int64_t count = std::min<std::int64_t>(function_chunk::size, operands.end - first);
      for (std::int64_t i = 0; i < count; ++i) {
        chunk.x[i] = static_cast<std::uint32_t>(first + i);
      }
      run_in(scope, [&] { codes(call, chunk, static_cast<int>(count)); });
      for (std::int64_t i = 0; i < count; ++i) {
        table[first + i] = static_cast<Code>(chunk.codes[i]);
      }
      first += count;
    }
  };
  for_each_part(table_size, where.threads, fill);
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

/// Applies a call by a table, on threads. Returns false and writes nothing if a table does not serve
/// the call, or if there is no memory for the table.
inline bool evaluate_by_table(const evaluate_call& call, const executor& where,
                              function_codes codes, kernel_scope scope) {
  bool done = false;
  if (!is_for_table(call)) return done;
  with_code_of(call.out.format, [&]<class Code>(Code) {
    const std::unique_ptr<Code[]> table(new (std::nothrow) Code[table_size]);
    if (table == nullptr) return;
    fill_table(call, where, codes, scope, table.get());
    for_each_part(call.out.rows * call.out.cols, where.threads, [&](element_range range) {
      for_each_row_part(
          call.out.cols, range, [&](std::int64_t row, std::int64_t col, std::int64_t count) {
            look_up(row_of(call.in, row, col), row_of(call.out, row, col), count, table.get());
          });
    });
    done = true;
  });
  return done;
}

}  // namespace samebits::backends
