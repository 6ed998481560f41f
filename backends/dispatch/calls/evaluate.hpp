// Functions of arrays: the checked calls that a backend receives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/dispatch/backend.hpp"
#include "numerics/hardware/evaluate.hpp"
#include "samebits/evaluate.hpp"

namespace samebits::backends {

/// A checked call. All views have the plan's format and one shape.
struct evaluate_call {
  numerics::function_plan plan;
  const_matrix_view in;
  const_matrix_view grad;  ///< data only if the gradient is wanted
  matrix_view out;
};

/// Codes of consecutive elements, one per word. Kernels may read and write up to the next multiple
/// of 16 words.
struct code_chunk {
  static constexpr int size = 512;
  alignas(64) std::uint32_t words[size] = {};
};

/// Applies a plan to `count` codes: codes = f(codes). `grad` is null unless the gradient is wanted.
using evaluate_codes = void (*)(const numerics::function_plan& plan, const std::uint32_t* grad,
                                std::uint32_t* codes, int count);

/// The first of `count` elements of a row, and the bytes from one element to the next.
struct element_row {
  std::byte* data;
  std::int64_t step;
};

inline element_row row_of(const const_matrix_view& v, std::int64_t row, std::int64_t col) {
  const std::int64_t bytes = spec_of(v.format).storage_bits / 8;
  // The caller stores only to rows of matrix_view.
  auto* const data = static_cast<std::byte*>(const_cast<void*>(v.data));
  return {data + (row * v.row_stride + col * v.col_stride) * bytes, v.col_stride * bytes};
}

template <class Code>
void load_codes(const element_row& row, int count, code_chunk& chunk) {
  for (int i = 0; i < count; ++i) {
    Code code;
    std::memcpy(&code, row.data + i * row.step, sizeof code);
    chunk.words[i] = code;
  }
}
template <class Code>
void store_codes(const element_row& row, int count, const code_chunk& chunk) {
  for (int i = 0; i < count; ++i) {
    const auto code = static_cast<Code>(chunk.words[i]);
    std::memcpy(row.data + i * row.step, &code, sizeof code);
  }
}

/// Applies the call to a range of elements, chunk by chunk.
template <class Code>
void evaluate_chunks(const evaluate_call& call, element_range range, evaluate_codes codes) {
  code_chunk x, grad;
  for (std::int64_t at = range.begin; at < range.end;) {
    const std::int64_t row = at / call.out.cols;
    const std::int64_t col = at % call.out.cols;
    const std::int64_t left = std::min(range.end - at, call.out.cols - col);
    const int count = static_cast<int>(std::min<std::int64_t>(left, code_chunk::size));
    const bool gradient = call.grad.data != nullptr;
    load_codes<Code>(row_of(call.in, row, col), count, x);
    if (gradient) load_codes<Code>(row_of(call.grad, row, col), count, grad);
    codes(call.plan, gradient ? grad.words : nullptr, x.words, count);
    store_codes<Code>(row_of(call.out, row, col), count, x);
    at += count;
  }
}

inline void evaluate_range(const evaluate_call& call, element_range range, evaluate_codes codes) {
  if (call.plan.format == format_id::fp32) {
    evaluate_chunks<std::uint32_t>(call, range, codes);
  } else {
    evaluate_chunks<std::uint16_t>(call, range, codes);
  }
}

}  // namespace samebits::backends
