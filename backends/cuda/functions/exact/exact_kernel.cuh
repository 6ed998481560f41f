// The kernel of functions of the rule `exact`, and its launch for a call. One thread computes
// `exact_elements` neighbours of a row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/launch.cuh"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/functions/function_kernel.cuh"
#include "backends/dispatch/calls/evaluate.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/random.hpp"
#include "numerics/functions/exact_function.hpp"

namespace samebits::cuda {

inline constexpr int exact_elements = 4;

/// Launch parameters of exact_kernel.
struct exact_task : function_task {
  cast_rule rule;
  random_stream random;
  std::uint64_t pitch;
};

template <int Bytes>
__device__ __forceinline__ void load_pack(const std::byte* p, std::uint32_t* codes) {
  const auto pack = packed<8 * Bytes, exact_elements>::load(p);
#pragma unroll
  for (int i = 0; i < exact_elements; ++i) codes[i] = pack.code(i);
}

__device__ __forceinline__ void load_exact(const function_operand& v, std::uint64_t row,
                                           std::uint64_t col, int count, std::uint32_t* codes) {
  const std::byte* p = v.data + static_cast<std::int64_t>(row) * v.row_stride +
                       static_cast<std::int64_t>(col) * v.col_stride;
  if (v.vectors && count == exact_elements) {
    if (v.bytes == 4) return load_pack<4>(p, codes);
    return load_pack<2>(p, codes);
  }
#pragma unroll
  for (int i = 0; i < exact_elements; ++i) {
    if (i < count) codes[i] = static_cast<std::uint32_t>(load_code(p + i * v.col_stride, v.bytes));
  }
}

template <int Bytes>
__device__ __forceinline__ void store_pack(std::byte* p, const std::uint32_t* codes) {
  packed<8 * Bytes, exact_elements> pack{};
#pragma unroll
  for (int i = 0; i < exact_elements; ++i) pack.set(i, codes[i]);
  pack.store(p);
}

__device__ __forceinline__ void store_exact(const function_operand& v, std::uint64_t row,
                                            std::uint64_t col, int count,
                                            const std::uint32_t* codes) {
  std::byte* p = v.data + static_cast<std::int64_t>(row) * v.row_stride +
                 static_cast<std::int64_t>(col) * v.col_stride;
  if (v.vectors && count == exact_elements) {
    if (v.bytes == 4) return store_pack<4>(p, codes);
    if (v.bytes == 2) return store_pack<2>(p, codes);
    return store_pack<1>(p, codes);
  }
#pragma unroll
  for (int i = 0; i < exact_elements; ++i) {
    if (i < count) store_code(p + i * v.col_stride, v.bytes, codes[i]);
  }
}

/// binary32 bits of a code of fp32, fp16 or bf16.
__device__ __forceinline__ std::uint32_t binary32_of(format_id format, std::uint32_t code) {
  if (format == format_id::fp32) return code;
  if (format == format_id::bf16) return code << 16;
  return numerics::decode<std::uint32_t>(spec_of(format_id::fp16), code);
}

/// The code of a binary64 result in the destination.
__device__ __forceinline__ std::uint32_t exact_code(const exact_task& t, std::uint64_t y,
                                                    std::uint64_t dither) {
  const auto round = [&](format_id to) {
    return static_cast<std::uint32_t>(
        numerics::real::destination_code(spec_of(to), t.rule, y, dither));
  };
  switch (t.out.format) {
    case format_id::fp16: return round(format_id::fp16);
    case format_id::bf16: return round(format_id::bf16);
    case format_id::e4m3: return round(format_id::e4m3);
    case format_id::e5m2: return round(format_id::e5m2);
    default: return round(format_id::fp32);
  }
}

/// Computes out = f(in), or grad * f(in), for every element; `Op::apply(x)` returns the binary64
/// result of binary32 bits. Elements of a thread are loaded before any of them is stored.
template <class Op>
__global__ void __launch_bounds__(block_threads) exact_kernel(const Op op, const exact_task t) {
  const std::uint64_t groups = t.rows * t.groups_in_row;
  const std::uint64_t step = std::uint64_t{gridDim.x} * block_threads;
  for (std::uint64_t g = std::uint64_t{blockIdx.x} * block_threads + threadIdx.x; g < groups;
       g += step) {
    const std::uint64_t row = t.rows == 1 ? 0 : g / t.groups_in_row;
    const std::uint64_t col = (g - row * t.groups_in_row) * exact_elements;
    const std::uint64_t left = t.cols - col;
    const int count = left < exact_elements ? static_cast<int>(left) : exact_elements;
    std::uint32_t x[exact_elements] = {}, grad[exact_elements] = {};
    load_exact(t.in, row, col, count, x);
    if (t.grad.data != nullptr) load_exact(t.grad, row, col, count, grad);
#pragma unroll
    for (int i = 0; i < exact_elements; ++i) {
      std::uint64_t y = op.apply(binary32_of(t.in.format, x[i]));
      if (t.grad.data != nullptr) {
        y = op.product(binary32_of(t.grad.format, grad[i]), y);
      }
      std::uint64_t dither = 0;
      if (t.rule.rounding == rounding::stochastic) {
        const std::uint64_t index = t.random.offset + row * t.pitch + col + i;
        dither = numerics::align_random<std::uint64_t>(
            numerics::random_word(t.random.seed, t.random.stream, index, t.random.bits),
            t.random.bits);
      }
      x[i] = exact_code(t, y, dither);
    }
    store_exact(t.out, row, col, count, x);
  }
}

inline exact_task exact_task_of(const backends::evaluate_call& call) {
  return {function_task_of(call, exact_elements), call.rule, call.random, call.pitch};
}

template <class Op>
void launch_exact(const char* what, const Op& op, const exact_task& t, void* stream) {
  launch_kernel(what, exact_kernel<Op>, function_blocks(t), block_threads, 0,
                static_cast<cudaStream_t>(stream), op, t);
}

}  // namespace samebits::cuda
