// native_op: converts a vector of codes by hardware instructions, for dense_kernel and the casts of
// lists.
//
// The hardware rounds to nearest even and writes the canonical NaN (PTX ISA, cvt; compared over all
// inputs by the conformance and exhaustive runs). The hardware's FP8 conversions only saturate. For
// overflow::ieee into FP8, native_op replaces the codes of inputs that round beyond max finite.
//
// Every conversion first widens to binary32, which is exact, and then rounds. So all pairs of
// formats rest on the conversions from fp32.
#pragma once

#include <cstdint>

#include "backends/cuda/convert/convert_ops.cuh"
#include "backends/cuda/instructions/fp8.cuh"
#include "backends/cuda/instructions/halves.cuh"
#include "backends/dispatch/visit.hpp"

namespace samebits::cuda {

/// Whether native_op has the rule.
constexpr bool supports_native_op(const cast_rule& rule) {
  return rule.rounding == rounding::nearest_even && rule.overflow != overflow::saturate_finite &&
         rule.nan == nan_policy::canonical;
}

/// The fp32 result of binary32 bits x: NaN becomes canonical and, if Saturate, Inf becomes max
/// finite.
template <bool Saturate>
__device__ __forceinline__ std::uint32_t settled_fp32(std::uint32_t x) {
  const std::uint32_t magnitude = x & 0x7FFFFFFFu;
  if (Saturate && magnitude == 0x7F800000u) return x - 1;
  return magnitude > 0x7F800000u ? 0x7FFFFFFFu : x;
}

/// Codes i and i + 1 of a vector, i even, as binary32 bits. A NaN may keep its payload.
template <format_id From, int E>
__device__ __forceinline__ uint2 wide_pair(const packed<spec_of(From).storage_bits, E>& x, int i) {
  if constexpr (spec_of(From).storage_bits == 8) {
    const float2 v = fp8_values<From>(static_cast<std::uint16_t>(x.w[i / 4] >> (i % 4 * 8)));
    return {__float_as_uint(v.x), __float_as_uint(v.y)};
  } else {
    return {widen<From>(x.code(i)), widen<From>(x.code(i + 1))};
  }
}

/// Conversion between fp32, fp16, bf16, e4m3 and e5m2 by hardware instructions: to nearest even,
/// overflow::ieee or saturate, canonical NaN.
template <format_id From, format_id To, bool Saturate>
struct native_op : emulated_op<backends::fixed_format<From>, backends::fixed_format<To>,
                               backends::fixed_rounding<rounding::nearest_even>, 0> {
  using base = emulated_op<backends::fixed_format<From>, backends::fixed_format<To>,
                           backends::fixed_rounding<rounding::nearest_even>, 0>;
  static constexpr int pack = 128 / larger(base::in_bits, base::out_bits);
  static constexpr int packs = 4;
  static constexpr pace order = pace::at_once;

  __device__ __forceinline__ packed<base::out_bits, pack> apply(
      const packed<base::in_bits, pack>& x, std::uint64_t, std::uint32_t = 0) const {
    packed<base::out_bits, pack> y{};
#pragma unroll
    for (int i = 0; i < pack; i += 2) {
      const auto [a, b] = wide_pair<From, pack>(x, i);
      if constexpr (base::out_bits == 32) {
        y.w[i] = settled_fp32<Saturate>(a);
        y.w[i + 1] = settled_fp32<Saturate>(b);
      } else {
        std::uint32_t pair;
        if constexpr (base::out_bits == 16) {
          pair = half_pair<To, Saturate>(a, b);
        } else if constexpr (Saturate) {
          pair = fp8_pair<To>(a, b);
        } else {
          const std::uint32_t saturated = fp8_pair<To>(a, b);
          pair = unsaturated<To>(a, saturated & 0xFF) | unsaturated<To>(b, saturated >> 8) << 8;
        }
        y.w[i * base::out_bits / 32] |= pair << (i * base::out_bits % 32);
      }
    }
    return y;
  }
};

}  // namespace samebits::cuda
