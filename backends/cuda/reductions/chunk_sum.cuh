// The sum, sum of squares or dot product of a chunk of up to 4096 dense elements, aligned to 16 bytes,
// by one warp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/sum_tree.cuh"
#include "backends/cuda/instructions/half_pairs.cuh"
#include "backends/cuda/instructions/halves.cuh"
#include "backends/cuda/reductions/reduction_parts.cuh"
#include "backends/dispatch/calls/reductions.hpp"
#include "samebits/core/format.hpp"

namespace samebits::cuda {

using backends::reduction;
using numerics::chunk_elements;

/// Vectors of 16 bytes of codes of format F.
template <format_id F>
struct vector_codes {
  static constexpr int bits = spec_of(F).storage_bits;
  static constexpr int count = 128 / bits;
  static constexpr int of_word = 32 / bits;

  /// The values of the codes in a word.
  __device__ __forceinline__ static void values(std::uint32_t word, float (&x)[of_word]) {
    if constexpr (bits == 32) {
      x[0] = __uint_as_float(word);
    } else if constexpr (bits == 16) {
      x[0] = __uint_as_float(widen<F>(word & 0xFFFFu));
      x[1] = __uint_as_float(widen<F>(word >> 16));
    } else {
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const float2 v = float_pair_of<F>(word, pair);
        x[2 * pair] = v.x, x[2 * pair + 1] = v.y;
      }
    }
  }

  /// Loads the first n codes of a vector; the other codes are `rest`.
  __device__ static uint4 load_some(const std::byte* p, int n, std::uint32_t rest) {
    std::uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const std::uint32_t code =
          i < n ? static_cast<std::uint32_t>(load_code(p + i * (bits / 8), bits / 8)) : rest;
      words[i / of_word] |= code << (i % of_word * bits);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
  }
};

/// Whether binary32 holds every product of two numbers of the format. Then one product is converted
/// to binary64 instead of two factors. Conversions to binary64 bound these kernels' speed.
SAMEBITS_INLINE constexpr bool has_short_products(format_id f) {
  return f == format_id::fp16 || f == format_id::e4m3 || f == format_id::e5m2;
}

/// Inputs and partial sums of neighbouring elements.
template <format_id F, reduction What, class Number>
struct element_sums {
  using codes = vector_codes<F>;
  /// Whether partial sums are in binary32: sums of 16 e4m3 numbers are exact there, as multiples of
  /// 2^-9 below 2^13.
  static constexpr bool is_short = What == reduction::sum && F == format_id::e4m3;
  using between = std::conditional_t<is_short, float, Number>;
  using sums = signed_sums<between>;

  /// The sum of two neighbouring inputs. All products are exact in binary64. So one product may be
  /// fused with the addition, which still rounds once.
  __device__ __forceinline__ static between pair(float x0, float y0, float x1, float y1) {
    if constexpr (What == reduction::sum) {
      return sums::add_partial_sums(static_cast<between>(x0), static_cast<between>(x1));
    } else if constexpr (sizeof(Number) == 8 && !has_short_products(F)) {
      return __fma_rn(static_cast<double>(x0), static_cast<double>(y0), product<double>(x1, y1));
    } else {
      return sums::add_partial_sums(static_cast<Number>(product<float>(x0, y0)),
                                    static_cast<Number>(product<float>(x1, y1)));
    }
  }
  /// The partial sum of two neighbouring words.
  __device__ __forceinline__ static between of_words(std::uint32_t x0, std::uint32_t y0,
                                                     std::uint32_t x1, std::uint32_t y1) {
    constexpr int n = codes::of_word;
    float a[n], b[n], c[n], d[n];
    codes::values(x0, a);
    codes::values(y0, b);
    codes::values(x1, c);
    codes::values(y1, d);
    if constexpr (n == 1) {
      return pair(a[0], b[0], c[0], d[0]);
    } else if constexpr (n == 2) {
      return sums::add_partial_sums(pair(a[0], b[0], a[1], b[1]), pair(c[0], d[0], c[1], d[1]));
    } else {
      return sums::add_partial_sums(
          sums::add_partial_sums(pair(a[0], b[0], a[1], b[1]), pair(a[2], b[2], a[3], b[3])),
          sums::add_partial_sums(pair(c[0], d[0], c[1], d[1]), pair(c[2], d[2], c[3], d[3])));
    }
  }
  __device__ __forceinline__ static Number of(const uint4& x, const uint4& y) {
    return static_cast<Number>(
        sums::add_partial_sums(of_words(x.x, y.x, x.y, y.y), of_words(x.z, y.z, x.w, y.w)));
  }
};

/// The partial sum of a chunk, computed by one warp. Each lane loads one vector of 16 bytes a turn.
/// The partial sum of lane l's vector in turn t is number 32 * t + l of its level (turn_tree).
/// 2^GroupBits turns are loaded together. Full: the chunk has 4096 elements.
template <format_id F, reduction What, class Number, int GroupBits, bool Full>
class chunk_sum {
  using codes = vector_codes<F>;
  using sums = signed_sums<Number>;
  using tree = turn_tree<sums>;
  static constexpr int turn_bits = codes::count == 4 ? 5 : codes::count == 8 ? 4 : 3;
  static_assert((32 * codes::count) << turn_bits == chunk_elements);
  static constexpr int group = 1 << GroupBits;
  static constexpr int bytes = codes::bits / 8;

 public:
  __device__ __forceinline__ chunk_sum(const std::byte* x, const std::byte* y, int count,
                                       unsigned lane)
      : x_(x), y_(y), count_(count), lane_(lane) {}

  /// The chunk's sum, in every lane. Calls seen(vector of x) for each vector of the lane; missing
  /// elements are -0.
  template <class Seen>
  __device__ __forceinline__ Number partial_sum(const Seen& seen) const {
    return tree::template of_chunk<turn_bits, GroupBits>(
        [&](int first_turn) { return of_group(first_turn, seen); });
  }
  __device__ __forceinline__ Number partial_sum() const {
    return partial_sum([](const uint4&) {});
  }

 private:
  template <class Seen>
  __device__ __forceinline__ Number of_group(int first_turn, const Seen& seen) const {
    if (!Full && first_turn * 32 * codes::count >= count_) return sums::no_partial_sum();
    uint4 x[group], y[group];
#pragma unroll
    for (int i = 0; i < group; ++i) {
      x[i] = load(x_, first_turn + i, minus_zero);
      y[i] = What == reduction::dot ? load(y_, first_turn + i, one) : x[i];
    }
    Number partial_sums[group];
#pragma unroll
    for (int i = 0; i < group; ++i) {
      seen(x[i]);
      partial_sums[i] = element_sums<F, What, Number>::of(x[i], y[i]);
    }
    return tree::template of_turns<GroupBits, 0>(0, [&](int i) { return partial_sums[i]; });
  }

  // Codes of missing elements. Then a sum adds -0, a dot product -0 * 1 and a sum of squares +0,
  // the square of -0: none of them changes the sum.
  static constexpr std::uint32_t minus_zero = std::uint32_t{1} << (codes::bits - 1);
  static constexpr std::uint32_t one = static_cast<std::uint32_t>(spec_of(F).bias)
                                       << spec_of(F).mantissa_bits;

  __device__ __forceinline__ uint4 load(const std::byte* data, int turn, std::uint32_t rest) const {
    const int first = (turn * 32 + static_cast<int>(lane_)) * codes::count;
    if (Full || first + codes::count <= count_) {
      return __ldcs(reinterpret_cast<const uint4*>(data + first * bytes));
    }
    return codes::load_some(data + first * bytes, count_ - first, rest);
  }

  const std::byte* x_;
  const std::byte* y_;
  int count_;
  unsigned lane_;
};

}  // namespace samebits::cuda
