// The kernel of functions of the rule `exact` by approximation, to nearest even into fp32, bf16 and
// fp16.
#pragma once

#include <cstdint>

#include "backends/cuda/common/launch.cuh"
#include "backends/cuda/functions/exact/approximations.cuh"
#include "backends/cuda/functions/exact/exact_kernel.cuh"
#include "backends/cuda/functions/exact/real_word.cuh"
#include "backends/cuda/instructions/halves.cuh"
#include "numerics/functions/exact_function.hpp"

namespace samebits::cuda {

/// A result's code. `sure` is false if numbers within 2^-39 of the approximation, relative, may
/// round to another code.
struct rounded_result {
  std::uint32_t code;
  bool sure;
};

/// Into fp32. In [2^-126, Inf] ties have the lowest 29 bits 2^28: those within 2^14 of them are not
/// sure. Results below 2^-151 are 0; those between are not sure.
__device__ __forceinline__ rounded_result rounded_to_fp32(double y) {
  constexpr unsigned margin = 1u << 14;
  constexpr unsigned tie = 1u << 28;
  const auto low = static_cast<unsigned>(__double2loint(y));
  const auto high = static_cast<unsigned>(__double2hiint(y)) & 0x7FFFFFFFu;
  const bool apart = (low << 3) - ((tie - margin) << 3) >= (2 * margin) << 3;
  const bool representable = high - ((1023u - 151u) << 20) >= (151u - 126u) << 20;
  return {__float_as_uint(__double2float_rn(y)), apart && representable};
}

/// Into bf16, by way of fp32. Rounding to fp32 moves no number across a tie of bf16, so only
/// results that are a tie in fp32 are not sure.
__device__ __forceinline__ rounded_result rounded_to_bf16(double y) {
  const std::uint32_t near = __float_as_uint(__double2float_rn(y));
  // Of two numbers: their conversion is faster than that of one.
  return {half_pair<format_id::bf16, false>(near, 0), (near & 0xFFFFu) != 0x8000u};
}

/// Into fp16, by way of fp32 as above. Ties of subnormal fp16 numbers are not looked for: results
/// from 2^-26 to 2^-14 are not sure.
__device__ __forceinline__ rounded_result rounded_to_fp16(double y) {
  const std::uint32_t near = __float_as_uint(__double2float_rn(y));
  const bool apart = (near & 0x1FFFu) != 0x1000u;
  const bool representable = (near & 0x7FFFFFFFu) - ((127u - 26u) << 23) >= (26u - 14u) << 23;
  return {half_pair<format_id::fp16, false>(near, 0), apart && representable};
}

/// The number of a code of fp32, fp16 or bf16.
__device__ __forceinline__ float number_of(format_id format, std::uint32_t code) {
  if (format == format_id::fp32) return __uint_as_float(code);
  if (format == format_id::bf16) return __uint_as_float(widen<format_id::bf16>(code));
  return __uint_as_float(widen<format_id::fp16>(code));
}

/// The code of an approximation in fp32, bf16 or fp16.
__device__ __forceinline__ rounded_result rounded_to(format_id format, double y) {
  if (format == format_id::fp32) return rounded_to_fp32(y);
  if (format == format_id::bf16) return rounded_to_bf16(y);
  return rounded_to_fp16(y);
}

/// The binary64 result of the definition. Not inline: it is the rare path, and the approximation
/// needs the registers.
template <numerics::real::exact_function F>
__device__ __noinline__ std::uint64_t definition_value(float x) {
  return numerics::real::value_at<F>(real_word(static_cast<double>(x))).bits;
}

/// The code of the definition in fp32, bf16 or fp16. Not inline, as definition_value().
template <numerics::real::exact_function F>
__device__ __noinline__ std::uint32_t definition_code(float x, format_id to) {
  const std::uint64_t y = definition_value<F>(x);
  const auto round = [&](format_id format) {
    return static_cast<std::uint32_t>(
        numerics::real::destination_code(spec_of(format), cast_rule{}, y, std::uint64_t{0}));
  };
  if (to == format_id::fp32) return __float_as_uint(__double2float_rn(real_word(y).number()));
  return to == format_id::bf16 ? round(format_id::bf16) : round(format_id::fp16);
}

/// Computes out[i] = f(in[i]) for `count` elements: the approximation where its rounding is sure,
/// else the definition. One thread per `exact_elements` neighbours, in a grid-stride loop. Inputs
/// and outputs: aligned to these many codes. Each element is loaded before any element of its
/// thread is stored, so out may be in.
template <numerics::real::exact_function F>
__global__ void __launch_bounds__(block_threads)
    approximation_kernel(const function_operand in, const function_operand out,
                         std::uint64_t count) {
  const std::uint64_t groups = count / exact_elements;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * block_threads + threadIdx.x;
  const std::uint64_t step = std::uint64_t{gridDim.x} * block_threads;
  for (std::uint64_t g = first; g < groups; g += step) {
    function_codes<0, exact_elements> c;
    float x[exact_elements];
    double y[exact_elements];
    bool sure[exact_elements];
    c.load(in, 0, g * exact_elements, exact_elements, true);
#pragma unroll
    for (int i = 0; i < exact_elements; ++i) {
      x[i] = number_of(in.format, c.code[i]);
      y[i] = approximation<F>(x[i], sure[i]);
    }
#pragma unroll
    for (int i = 0; i < exact_elements; ++i) {
      const rounded_result r = rounded_to(out.format, y[i]);
      c.code[i] = r.code;
      sure[i] = sure[i] && r.sure;
    }
#pragma unroll
    for (int i = 0; i < exact_elements; ++i) {
      if (!sure[i]) c.code[i] = definition_code<F>(x[i], out.format);
    }
    c.store(out, 0, g * exact_elements, exact_elements, true);
  }
  const std::uint64_t rest = groups * exact_elements + first;
  if (rest >= count) return;
  const std::uint64_t code = load_code(in.data + rest * in.bytes, in.bytes);
  const float x = number_of(in.format, static_cast<std::uint32_t>(code));
  store_code(out.data + rest * out.bytes, out.bytes, definition_code<F>(x, out.format));
}

}  // namespace samebits::cuda
