// Quantization with statistics of one thread's vector of 8 elements. Computes:
//
// - the FP8 codes
// - the partial sums of x^2 and (x - x')^2 in the fixed tree of contract §6; x' is the dequantized
//   code
// - the counts of zero elements and zero codes, and the minimum nonzero magnitude
//
// If a block tile holds Inf, NaN or numbers with the largest exponent, all vectors of the block
// tile are rounded in integers, by the definition.
#pragma once

#include <cstdint>

#include "backends/cuda/common/sum_tree.cuh"
#include "backends/cuda/instructions/fp8.cuh"
#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/quantize/statistics.cuh"
#include "backends/cuda/quantize/tiles/tile_codes.cuh"
#include "backends/cuda/quantize/tiles/vector_cast.cuh"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"

namespace samebits::cuda {

/// Whether elements have 16 bits: bf16 and fp16.
template <format_id From>
inline constexpr bool is_half = spec_of(From).storage_bits == 16;

/// The cast of a quantization with statistics: products of finite elements. tile_factor::inverse
/// holds the dequantization scale.
template <format_id To>
struct statistics_cast : finite_product_cast<To> {
  __device__ __forceinline__ static tile_factor factor_of(const tile_scale& s) {
    return {s.factor, s.dequantization_scale};
  }
};

/// Magnitudes, as codes, from here on have the exponent of the format's largest numbers, or are Inf
/// or NaN. The dequantized code of such an element may be Inf, so its block tile is rounded by the
/// definition.
template <format_id From>
inline constexpr std::uint32_t top_binade = inf_magnitude<From> -
                                            (1u << spec_of(From).mantissa_bits);

/// x - restored in binary64, where `restored` is x's dequantized code.
///
/// For a 16-bit x the difference fits binary32. x and `restored` are equal, within a factor of two
/// of each other, or one of them is zero. Roundings of the scale can move `restored` to just above
/// 2 x, by 2^-22 of it. The difference still fits, because x has at most 11 significant bits.
template <format_id From>
__device__ __forceinline__ double error_of(float x, float restored) {
  if constexpr (is_half<From>) {
    return static_cast<double>(__fsub_rn(x, restored));
  } else {
    return __dsub_rn(static_cast<double>(x), static_cast<double>(restored));
  }
}

/// RN(RN(a * a) + RN(b * b)). Exact promises that a and b have at most 24 significant bits. Then
/// their squares are exact, and one fused step rounds once, as the sum does.
template <bool Exact>
__device__ __forceinline__ double sum_of_squares(double a, double b) {
  const double square = __dmul_rn(b, b);
  return Exact ? __fma_rn(a, a, square) : __dadd_rn(__dmul_rn(a, a), square);
}

/// Codes and partial sums of a vector.
struct coded_vector {
  uint2 codes;
  quantize_sums sums;
};

/// Quantizes a vector of finite elements below top_binade, and sums x^2 and (x - restored)^2.
template <format_id From, format_id To>
__device__ __forceinline__ coded_vector coded(const vector8<From>& x, const tile_factor& f) {
  const float factor = __uint_as_float(f.factor), dequantization_scale = __uint_as_float(f.inverse);
  std::uint16_t pairs[vector_length / 2];
  quantize_sums sums[vector_length / 2];
#pragma unroll
  for (int i = 0; i < vector_length; i += 2) {
    const float a = element<From>(x, i), b = element<From>(x, i + 1);
    pairs[i / 2] = static_cast<std::uint16_t>(
        fp8_pair<To>(__float_as_uint(__fmul_rn(a, factor)), __float_as_uint(__fmul_rn(b, factor))));
    const float2 values = fp8_values<To>(pairs[i / 2]);
    sums[i / 2].signal = sum_of_squares<true>(static_cast<double>(a), static_cast<double>(b));
    sums[i / 2].noise =
        sum_of_squares<is_half<From>>(error_of<From>(a, __fmul_rn(values.x, dequantization_scale)),
                                      error_of<From>(b, __fmul_rn(values.y, dequantization_scale)));
  }
  combine_neighbours<paired_sums, vector_length / 2>(sums);
  const auto word = [&](int i) { return pairs[i] | std::uint32_t{pairs[i + 1]} << 16; };
  return {make_uint2(word(0), word(2)), sums[0]};
}

/// Quantizes a vector by the definition, element by element, and sums as coded() does. Adds the
/// elements to `counts`.
template <format_id From, format_id To>
__device__ __noinline__ coded_vector defined_vector_with_statistics(const tile_task& t,
                                                                    const tile_factor& f,
                                                                    std::uint64_t row,
                                                                    std::uint32_t col,
                                                                    quantize_counts& counts) {
  quantize_sums sums[vector_length];
  std::uint64_t codes = 0;
#pragma unroll 1
  for (int i = 0; i < vector_length; ++i) {
    const std::uint32_t x =
        numerics::decode<std::uint32_t>(spec_of(From), load_element<From>(t, row, col + i));
    const std::uint32_t y = numerics::scaled<hardware>(t.scale.rule, {0, f.factor}, x);
    const auto cast = numerics::encode<std::uint32_t>(spec_of(To), t.cast, y, 0);
    const std::uint32_t restored = numerics::rescaled<hardware>(spec_of(To), cast.code, f.inverse);
    constexpr auto magnitude = static_cast<std::uint32_t>(numerics::magnitude_mask(spec_of(To)));
    counts.add({x, y, cast.code & magnitude, restored, cast.overflow});
    sums[i] = input_of(x, restored);
    codes |= std::uint64_t{cast.code} << (8 * i);
  }
  for (int n = vector_length; n > 1; n /= 2) {
    for (int i = 0; i < n / 2; ++i) sums[i] = combined(sums[2 * i], sums[2 * i + 1]);
  }
  return {make_uint2(static_cast<unsigned>(codes), static_cast<unsigned>(codes >> 32)), sums[0]};
}

/// Bit 7 of each byte is set if the FP8 code in this byte is neither +0 nor -0. All other bits are
/// arbitrary.
__device__ __forceinline__ std::uint32_t nonzero_codes(std::uint32_t codes) {
  return (codes & 0x7F7F7F7Fu) + 0x7F7F7F7Fu;
}
/// Bit 7 of each byte of a word.
inline constexpr std::uint32_t bit_7_of_bytes = 0x80808080u;

/// Whether no code of two vectors is a zero.
__device__ __forceinline__ bool all_nonzero(uint2 a, uint2 b) {
  return (nonzero_codes(a.x) & nonzero_codes(a.y) & nonzero_codes(b.x) & nonzero_codes(b.y) &
          bit_7_of_bytes) == bit_7_of_bytes;
}

/// Counts of one thread over finite elements. No finite element saturates: RN(amax * factor) rounds
/// to at most the largest code.
template <format_id From>
struct finite_counts {
  /// The minimum nonzero magnitude, as a code; Inf if there is none. For 16-bit formats each half
  /// of the word holds one minimum, with an arbitrary sign.
  std::uint32_t minimum =
      is_half<From> ? inf_magnitude<From> << 16 | inf_magnitude<From> : inf_magnitude<From>;
  std::uint32_t zeros = 0, zero_codes = 0;

  /// Adds a vector without zero codes, and so without zero elements.
  __device__ __forceinline__ void add_nonzero(const vector8<From>& x) {
#pragma unroll
    for (const std::uint32_t word : x.w) {
      if constexpr (is_half<From>) {
        minimum = smaller_magnitudes<From>(minimum, word);
      } else {
        minimum = min(minimum, word & 0x7FFFFFFFu);
      }
    }
  }
  /// Adds any vector of finite elements.
  __device__ __forceinline__ void add(const vector8<From>& x, uint2 codes) {
    zero_codes += __popc(~nonzero_codes(codes.x) & bit_7_of_bytes) +
                  __popc(~nonzero_codes(codes.y) & bit_7_of_bytes);
#pragma unroll
    for (const std::uint32_t word : x.w) {
      if constexpr (is_half<From>) {
        const std::uint32_t magnitudes = word & 0x7FFF7FFFu, zero = __vcmpeq2(magnitudes, 0);
        zeros += __popc(zero) / 16;
        minimum = __vminu2(minimum & 0x7FFF7FFFu, magnitudes | zero);
      } else {
        const std::uint32_t magnitude = word & 0x7FFFFFFFu;
        zeros += magnitude == 0 ? 1 : 0;
        minimum = magnitude == 0 ? minimum : min(minimum, magnitude);
      }
    }
  }
  /// The minimum nonzero magnitude in binary32 bits.
  [[nodiscard]] __device__ __forceinline__ std::uint32_t min_nonzero() const {
    const std::uint32_t one =
        is_half<From> ? min(minimum & 0x7FFFu, minimum >> 16 & 0x7FFFu) : minimum;
    return one < inf_magnitude<From> ? numerics::decode<std::uint32_t>(spec_of(From), one)
                                     : quantize_counts::none;
  }
};

}  // namespace samebits::cuda
