// The elements of functions of the rule `exact`, for function_kernel, and the launch of a call. One
// thread computes `exact_elements` neighbours of a row.
#pragma once

#include <cstdint>

#include "backends/cuda/functions/function_kernel.cuh"
#include "backends/dispatch/calls/evaluate.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/random.hpp"
#include "numerics/functions/exact_function.hpp"

namespace samebits::cuda {

inline constexpr int exact_elements = 4;

/// binary32 bits of a code of fp32, fp16 or bf16.
__device__ __forceinline__ std::uint32_t binary32_of(format_id format, std::uint32_t code) {
  if (format == format_id::fp32) return code;
  if (format == format_id::bf16) return code << 16;
  return numerics::decode<std::uint32_t>(spec_of(format_id::fp16), code);
}

/// Op of function_kernel. `Values` has apply(x), the binary64 result of binary32 bits, and product(grad,
/// y), that of a gradient.
template <class Values>
struct exact_op {
  static constexpr int bytes = 0;
  static constexpr int count = exact_elements;
  __device__ static bool has_gradient(const function_task& t) { return t.grad.data != nullptr; }
  Values values;
  cast_rule rule;
  random_stream random;
  std::uint64_t pitch;

  __device__ __forceinline__ std::uint32_t apply(const function_task& t, std::uint32_t x,
                                                 std::uint32_t grad, std::uint64_t row,
                                                 std::uint64_t col) const {
    std::uint64_t y = values.apply(binary32_of(t.in.format, x));
    if (has_gradient(t)) y = values.product(binary32_of(t.grad.format, grad), y);
    std::uint64_t dither = 0;
    if (rule.rounding == rounding::stochastic) {
      const std::uint64_t index = random.offset + row * pitch + col;
      dither = numerics::align_random<std::uint64_t>(
          numerics::random_word(random.seed, random.stream, index, random.bits), random.bits);
    }
    const auto round = [&](format_id to) {
      return static_cast<std::uint32_t>(
          numerics::real::destination_code(spec_of(to), rule, y, dither));
    };
    switch (t.out.format) {
      case format_id::fp16: return round(format_id::fp16);
      case format_id::bf16: return round(format_id::bf16);
      case format_id::e4m3: return round(format_id::e4m3);
      case format_id::e5m2: return round(format_id::e5m2);
      default: return round(format_id::fp32);
    }
  }
};

template <class Values>
void launch_exact(const char* what, const Values& values, const backends::evaluate_call& call,
                  void* stream) {
  launch_function(what, exact_op<Values>{values, call.rule, call.random, call.pitch}, call, stream);
}

}  // namespace samebits::cuda
