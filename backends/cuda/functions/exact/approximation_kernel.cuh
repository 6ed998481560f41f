// The kernel of functions of the rule `exact` by approximation, to nearest even into fp32, bf16 and
// fp16.
#pragma once

#include <cstdint>

#include "backends/cuda/common/launch.cuh"
#include "backends/cuda/functions/exact/approximations.cuh"
#include "backends/cuda/functions/exact/exact_kernel.cuh"
#include "backends/cuda/functions/exact/real_word.cuh"
#include "backends/cuda/functions/exact/rounded_results.cuh"
#include "numerics/functions/exact_function.hpp"

namespace samebits::cuda {

/// The number of a code of fp32, fp16 or bf16.
__device__ __forceinline__ float number_of(format_id format, std::uint32_t code) {
  if (format == format_id::fp32) return __uint_as_float(code);
  if (format == format_id::bf16) return __uint_as_float(code << 16);
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(static_cast<std::uint16_t>(code)));
  return x;
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
