// Functions of the rule `exact` on arrays: the checked calls that a backend receives, and the loop
// over chunks of a host backend.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/calls/evaluate.hpp"
#include "numerics/functions/exact_functions.hpp"

namespace samebits::backends {

/// A checked call: out = f(in), or grad * f(in) if f is a gradient, rounded once. `in` and `grad`
/// are in fp32, fp16 or bf16, `out` in these, e4m3 or e5m2.
struct exact_call {
  numerics::real::exact_function f;
  const_matrix_view in;
  const_matrix_view grad;  ///< data only if f is a gradient
  matrix_view out;
  cast_rule rule;  ///< to nearest even, or stochastic with at most 16 random bits
  random_stream random;
  std::uint64_t pitch;  ///< elements from one row to the next, for the random bits
};

/// Elements of a chunk, one per word. Kernels may read and write up to the next multiple of 16.
struct exact_chunk {
  static constexpr int size = 512;
  alignas(64) std::uint32_t x[size] = {};       ///< codes of `in`; kernels may change them
  alignas(64) std::uint32_t grad[size] = {};    ///< codes of `grad`; kernels may change them
  alignas(64) std::uint64_t dither[size] = {};  ///< random bits at the top of the word
  alignas(64) std::uint64_t y[size] = {};       ///< scratch memory of kernels: results before rounding
  alignas(64) std::uint32_t codes[size] = {};   ///< codes of `out`
};

/// Computes chunk.codes for `count` elements.
using exact_codes = void (*)(const exact_call& call, exact_chunk& chunk, int count);

/// Calls copy(step) with the bytes from one element to the next. They are a constant for neighbours
/// in memory, so that the compiler can use vectors.
template <class Code, class Copy>
void copy_elements(const element_row& row, const Copy& copy) {
  constexpr std::int64_t dense = sizeof(Code);
  if (row.step == dense) return copy(std::integral_constant<std::int64_t, dense>{});
  copy(row.step);
}

inline void load_words(const const_matrix_view& v, std::int64_t row, std::int64_t col, int count,
                       std::uint32_t* words) {
  const element_row from = row_of(v, row, col);
  const auto load = [&]<class Code>(Code) {
    copy_elements<Code>(from, [&](auto step) {
      for (int i = 0; i < count; ++i) {
        Code code;
        std::memcpy(&code, from.data + i * step, sizeof code);
        words[i] = code;
      }
    });
  };
  if (v.format == format_id::fp32) return load(std::uint32_t{});
  load(std::uint16_t{});
}

inline void store_words(const matrix_view& v, std::int64_t row, std::int64_t col, int count,
                        const std::uint32_t* words) {
  const element_row to = row_of(v, row, col);
  const auto store = [&]<class Code>(Code) {
    copy_elements<Code>(to, [&](auto step) {
      for (int i = 0; i < count; ++i) {
        const auto code = static_cast<Code>(words[i]);
        std::memcpy(to.data + i * step, &code, sizeof code);
      }
    });
  };
  switch (spec_of(v.format).storage_bits) {
    case 8: return store(std::uint8_t{});
    case 16: return store(std::uint16_t{});
    default: return store(std::uint32_t{});
  }
}

/// Applies the call to a range of elements, chunk by chunk. `random(index)` returns the random bits
/// of an element at the top of a word.
template <class Random>
void exact_range(const exact_call& call, element_range range, exact_codes codes, Random& random) {
  exact_chunk chunk;
  for (std::int64_t at = range.begin; at < range.end;) {
    const std::int64_t row = at / call.out.cols;
    const std::int64_t col = at % call.out.cols;
    const std::int64_t left = std::min(range.end - at, call.out.cols - col);
    const int count = static_cast<int>(std::min<std::int64_t>(left, exact_chunk::size));
    load_words(call.in, row, col, count, chunk.x);
    if (call.grad.data != nullptr) load_words(call.grad, row, col, count, chunk.grad);
    if (call.rule.rounding == rounding::stochastic) {
      const std::uint64_t first = call.random.offset +
                                  static_cast<std::uint64_t>(row) * call.pitch +
                                  static_cast<std::uint64_t>(col);
      for (int i = 0; i < count; ++i) {
        chunk.dither[i] = random(first + static_cast<std::uint64_t>(i));
      }
    }
    codes(call, chunk, count);
    store_words(call.out, row, col, count, chunk.codes);
    at += count;
  }
}

}  // namespace samebits::backends
