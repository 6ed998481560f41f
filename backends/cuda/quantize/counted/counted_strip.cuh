// The statistics of a strip of finite elements: leaves of the sum trees of contract §6 joined to a
// node, and counts.
#pragma once

#include <cstdint>

#include "backends/cuda/quantize/statistics.cuh"
#include "backends/cuda/quantize/tiles/patch_block.cuh"
#include "backends/cuda/quantize/tiles/strip_cast.cuh"
#include "numerics/quantize/counted.hpp"

namespace samebits::cuda {

/// What a block needs of a tile: the factor of its elements, its stored scale, and the largest code
/// of what needs a closer look.
struct counted_factor {
  std::uint32_t factor, stored;
  std::uint32_t small;  ///< strip_counts::add; of a 16-bit format twice
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

/// The same of four strips side by side.
template <format_id From>
struct four_strips {
  strip_of<From> of[4];
};
template <format_id From>
__device__ __noinline__ double any_signal_of_four(four_strips<From> x) {
  double nodes[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) nodes[k] = any_signal_of<From>(x.of[k]);
  return joined_four(nodes);
}

/// v * 2^29 as 64 bits, in one multiplication, where two shifts and a move of zero were three
/// instructions.
__device__ __forceinline__ double wide_square(float v) {
  static_assert(numerics::wide_square(1) == std::uint64_t{1} << 29);
  std::uint64_t wide;
  asm("mul.wide.u32 %0, %1, 0x20000000;" : "=l"(wide) : "r"(__float_as_uint(v)));
  return __longlong_as_double(static_cast<long long>(wide));
}

/// The sum of a lane's squares where it is exact in any order and numerics::exact_squares() holds
/// all elements, else any number. Conversions to binary64 are slow, eight cycles for a warp, so
/// that some squares are converted by an integer multiplication.
class exact_sum {
 public:
  template <format_id From>
  __device__ __forceinline__ void add(const strip_of<From>& x) {
#pragma unroll
    for (int i = 0; i < strip; ++i) {
      const float a = element<From>(x, i);
      if (i < converted) {
        const auto d = static_cast<double>(a);
        squares_[i % 2] = __fma_rn(d, d, squares_[i % 2]);
      } else {
        wide_ = __dadd_rn(wide_, wide_square(__fmul_rn(a, a)));
      }
    }
  }
  [[nodiscard]] __device__ __forceinline__ double sum() const {
    static_assert(numerics::squares_exponent == 896);
    const double sum = __dadd_rn(squares_[0], squares_[1]);
    return converted == strip ? sum : __fma_rn(wide_, 0x1p896, sum);
  }

 private:
  static constexpr int converted = 6;  ///< of a strip
  double squares_[2] = {0, 0}, wide_ = 0;
};

/// Codes of a strip, and the sum of its squared errors.
template <format_id From, format_id To>
__device__ __forceinline__ double coded(const strip_of<From>& x, const counted_factor& f,
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
  return joined_four(noise);
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
  std::uint32_t most = 0;              ///< of magnitudes; two halves
  std::uint32_t zeros = 0, zero_codes = 0;

  /// Four strips, inside the matrix or not, their codes and signal; `largest`: of their magnitudes,
  /// as `most`. Where all magnitudes are above
  /// `small` there are neither zeros nor codes of zeros, and the signal of exact_sum is right.
  __device__ __forceinline__ void add(const strip_of<From> (&x)[4], const uint2 (&codes)[4],
                                      std::uint32_t small, std::uint32_t largest, bool inside,
                                      double& signal) {
    const std::uint32_t least = least_of<From>(x);
    if (all_above<From>(least, small)) return lower(least);
    if (!inside) return;
    std::uint32_t least_of_four = 0xFFFFFFFFu;  // as `lowest`
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::uint32_t of_strip = add_small(x[k], codes[k]);
      least_of_four =
          is_half<From> ? __vminu2(least_of_four, of_strip) : min(least_of_four, of_strip);
    }
    lowest = is_half<From> ? __vminu2(lowest, least_of_four) : min(lowest, least_of_four);
    if constexpr (is_half<From>) {
      constexpr auto exact = numerics::exact_squares(From);
      largest = max(largest & 0xFFFFu, largest >> 16);
      const std::uint32_t nonzero = min(least_of_four & 0xFFFFu, least_of_four >> 16) + 1;
      if (nonzero < exact.least || largest >= exact.most ||
          nonzero + numerics::exact_sum_reach(From) < largest) {
        signal = any_signal_of_four<From>({{x[0], x[1], x[2], x[3]}});
      }
    }
  }

  [[nodiscard]] __device__ __forceinline__ element_counts counts() const {
    element_counts c;
    c.zeros = zeros;
    c.underflowed = zero_codes - zeros;
    const std::uint32_t largest = is_half<From> ? max(most & 0xFFFFu, most >> 16) : most;
    c.amax = numerics::decode<std::uint32_t>(spec_of(From), largest);
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
  /// Counts of a strip; its least magnitudes as `lowest` has them.
  __device__ __forceinline__ std::uint32_t add_small(const strip_of<From>& x, uint2 codes) {
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
    return of_strip.lowest;
  }
};

}  // namespace samebits::cuda
