// The statistics of a strip of finite elements: leaves of the sum trees of contract §6 joined to a
// node, and counts.
#pragma once

#include <cstdint>

#include "backends/cuda/native/patch_block.cuh"
#include "backends/cuda/native/strip_cast.cuh"
#include "backends/cuda/statistics.cuh"
#include "numerics/counted.hpp"

namespace samebits::cuda {

/// What a block needs of a tile: the factor of its elements, its stored scale, and the largest code
/// of what needs a closer look.
struct alignas(16) counted_factor {
  std::uint32_t factor, stored;
  std::uint32_t small;  ///< strip_counts::add; of a 16-bit format twice
  std::uint32_t unused;
};

/// Two FP8 codes, a in the low byte; saturating, NaN gives 7F. As a register of 16 bits, which
/// values_of() takes.
template <format_id To>
__device__ __forceinline__ unsigned short codes_of(float a, float b) {
  return static_cast<unsigned short>(fp8_pair<To>(__float_as_uint(a), __float_as_uint(b)));
}

template <format_id From>
inline constexpr bool is_half = spec_of(From).storage_bits == 16;

/// x minus what its code stands for. Of a 16-bit format the difference of two numbers that are
/// equal, within a factor of two of each other or of which one is zero needs no more bits than
/// binary32 has. A code's value can be more than twice x by its scale's roundings alone, 2^-22 of
/// it, and does not leave x's binade then: x has 11 bits at most.
template <format_id From>
__device__ __forceinline__ double error_of(float x, float restored) {
  if constexpr (is_half<From>) {
    return static_cast<double>(__fsub_rn(x, restored));
  } else {
    return __dsub_rn(static_cast<double>(x), static_cast<double>(restored));
  }
}

/// RN(RN(a * a) + RN(b * b)); the squares of numbers of 24 bits are exact, so an fma rounds as the
/// sum does.
template <bool Exact>
__device__ __forceinline__ double sum_of_squares(double a, double b) {
  const double square = __dmul_rn(b, b);
  return Exact ? __fma_rn(a, a, square) : __dadd_rn(__dmul_rn(a, a), square);
}

/// The root of the tree over four nodes.
__device__ __forceinline__ double joined_four(const double (&n)[strip / 2]) {
  return __dadd_rn(__dadd_rn(n[0], n[1]), __dadd_rn(n[2], n[3]));
}

/// The sum of a strip's squares, whatever its exponents.
template <format_id From>
__device__ __forceinline__ double any_signal_of(const strip_of<From>& x) {
  double nodes[strip / 2];
#pragma unroll
  for (int i = 0; i < strip; i += 2) {
    nodes[i / 2] = sum_of_squares<true>(static_cast<double>(element<From>(x, i)),
                                        static_cast<double>(element<From>(x, i + 1)));
  }
  return joined_four(nodes);
}

template <format_id From>
__device__ __noinline__ double rare_signal_of(strip_of<From> x) {
  return any_signal_of<From>(x);
}

/// The same where numerics::exact_squares() holds all elements, else any number: conversions to
/// binary64 are slow, eight cycles for a warp, and one of a square is a shift.
template <format_id From>
__device__ __forceinline__ double signal_of(const strip_of<From>& x) {
  if constexpr (!is_half<From>) {
    return any_signal_of<From>(x);
  } else {
    double nodes[strip / 2];
#pragma unroll
    for (int i = 0; i < strip; i += 2) {
      const auto square = [&](int k) {
        const float a = element<From>(x, k);
        const std::uint32_t v = __float_as_uint(__fmul_rn(a, a));
        if constexpr (From == format_id::bf16) {
          // Of 16 bits of significand none comes to the low word, and two shifts take longer.
          return __hiloint2double(static_cast<int>(v >> 3), 0);
        } else {
          return __longlong_as_double(static_cast<long long>(numerics::wide_square(v)));
        }
      };
      nodes[i / 2] = __dadd_rn(square(i), square(i + 1));
    }
    static_assert(numerics::squares_exponent == 896);
    return __dmul_rn(joined_four(nodes), 0x1p896);
  }
}

/// Codes and node of a strip.
template <format_id From, format_id To>
__device__ __forceinline__ sum_node coded(const strip_of<From>& x, const counted_factor& f,
                                          uint2& codes) {
  unsigned short pairs[strip / 2];
  double noise[strip / 2];
  const float factor = __uint_as_float(f.factor), stored = __uint_as_float(f.stored);
#pragma unroll
  for (int i = 0; i < strip; i += 2) {
    const float a = element<From>(x, i), b = element<From>(x, i + 1);
    pairs[i / 2] = codes_of<To>(__fmul_rn(a, factor), __fmul_rn(b, factor));
    const float2 values = fp8_values<To>(pairs[i / 2]);
    noise[i / 2] = sum_of_squares<is_half<From>>(error_of<From>(a, __fmul_rn(values.x, stored)),
                                                 error_of<From>(b, __fmul_rn(values.y, stored)));
  }
  const auto word = [&](int i) {
    return pairs[i] | static_cast<std::uint32_t>(pairs[i + 1]) << 16;
  };
  codes = make_uint2(word(0), word(2));
  return {signal_of<From>(x), joined_four(noise)};
}

/// Magnitudes of one element, or of two in halves, as codes.
template <format_id From>
inline constexpr std::uint32_t all_magnitudes = is_half<From> ? 0x7FFF7FFFu : 0x7FFFFFFFu;

/// The least magnitudes of strips.
template <format_id From, int Strips>
__device__ __forceinline__ std::uint32_t least_of(const strip_of<From> (&x)[Strips]) {
  std::uint32_t least = x[0].w[0] & all_magnitudes<From>;
#pragma unroll
  for (const strip_of<From>& s : x) {
    if constexpr (is_half<From>) {
      const std::uint32_t of_strip = smaller_magnitudes<From>(
          smaller_magnitudes<From>(s.w[0], s.w[1]), smaller_magnitudes<From>(s.w[2], s.w[3]));
      least = &s == x ? of_strip : smaller_magnitudes<From>(least, of_strip);
    } else {
#pragma unroll
      for (const std::uint32_t code : s.w) least = min(least, code & all_magnitudes<From>);
    }
  }
  return least & all_magnitudes<From>;
}

/// Whether all magnitudes of a word, none of a NaN, are greater than those of `small`.
template <format_id From>
__device__ __forceinline__ bool all_above(std::uint32_t magnitudes, std::uint32_t small) {
  if constexpr (!is_half<From>) return magnitudes > small;
#if __CUDA_ARCH__ >= 900  // one comparison of two halves; of bf16 there is none before
  std::uint32_t above = 0;
  if constexpr (From == format_id::bf16) {
    asm("{\n\t.reg .pred p, q;\n\tsetp.gt.bf16x2 p|q, %1, %2;\n\tand.pred p, p, q;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(above)
        : "r"(magnitudes), "r"(small));
  } else {
    asm("{\n\t.reg .pred p, q;\n\tsetp.gt.f16x2 p|q, %1, %2;\n\tand.pred p, p, q;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(above)
        : "r"(magnitudes), "r"(small));
  }
  return above != 0;
#else
  return numerics::both_above(magnitudes, small);
#endif
}

/// What a thread counts of finite elements. None of them saturates, since RN(amax * factor) rounds
/// to no more than the largest code.
template <format_id From>
struct strip_counts {
  std::uint32_t lowest = 0xFFFFFFFFu;  ///< of magnitudes - 1, where 0 wraps to the top; two halves
  std::uint32_t most = 0;              ///< the code of the largest magnitude
  std::uint32_t zeros = 0, zero_codes = 0;

  /// Strips, of which `inside` lie in the matrix, their codes and nodes. Where all magnitudes are
  /// above `small` there are neither zeros nor codes of zeros, and the signals are right; else
  /// signal_of() may not have served.
  template <int Strips>
  __device__ __forceinline__ void add(const strip_of<From> (&x)[Strips],
                                      const uint2 (&codes)[Strips], std::uint32_t small, int inside,
                                      sum_node (&nodes)[Strips]) {
    const std::uint32_t least = least_of<From>(x);
    if (all_above<From>(least, small)) return lower(least);
#pragma unroll
    for (int k = 0; k < Strips; ++k) {
      if (k < inside) add_small(x[k], codes[k], nodes[k].signal);
    }
  }

  [[nodiscard]] __device__ __forceinline__ element_counts counts() const {
    element_counts c;
    c.zeros = zeros;
    c.underflowed = zero_codes - zeros;
    c.amax = numerics::decode<std::uint32_t>(spec_of(From), most);
    std::uint32_t least = lowest;
    if constexpr (is_half<From>) {
      const std::uint32_t least_of_two = min(lowest & 0xFFFFu, lowest >> 16);
      least = least_of_two == 0xFFFFu ? 0xFFFFFFFFu : least_of_two;
    }
    if (least != 0xFFFFFFFFu) {
      c.min_nonzero = numerics::decode<std::uint32_t>(spec_of(From), least + 1);
    }
    return c;
  }

 private:
  __device__ __forceinline__ void lower(std::uint32_t magnitudes) {
    if constexpr (is_half<From>) {
      lowest = __vminu2(lowest, __vsub2(magnitudes, 0x00010001u));
    } else {
      lowest = min(lowest, magnitudes - 1);
    }
  }
  __device__ __forceinline__ void add_small(const strip_of<From>& x, uint2 codes, double& signal) {
    std::uint32_t others = 0;  // that are not zero; in halves
    strip_counts of_strip;
#pragma unroll
    for (const std::uint32_t word : x.w) {
      const std::uint32_t magnitudes = word & all_magnitudes<From>;
      of_strip.lower(magnitudes);
      others += is_half<From> ? __vminu2(magnitudes, 0x00010001u) : min(magnitudes, 1u);
    }
    zeros += static_cast<unsigned>(strip) - (others & 0xFFFFu) - (others >> 16);
    const std::uint32_t a = (codes.x & 0x7F7F7F7Fu) + 0x7F7F7F7Fu;  // bit 7: not zero
    const std::uint32_t b = (codes.y & 0x7F7F7F7Fu) + 0x7F7F7F7Fu;
    zero_codes += static_cast<unsigned>(__popc(~a & 0x80808080u) + __popc(~b & 0x80808080u));
    if constexpr (From == format_id::bf16) {
      lowest = __vminu2(lowest, of_strip.lowest);
      constexpr auto exact = numerics::exact_squares(From);
      const std::uint32_t least = min(of_strip.lowest & 0xFFFFu, of_strip.lowest >> 16) + 1;
      if (least < exact.least || most >= exact.most) signal = rare_signal_of<From>(x);
    } else {
      lowest = is_half<From> ? __vminu2(lowest, of_strip.lowest) : min(lowest, of_strip.lowest);
    }
  }
};

}  // namespace samebits::cuda
