// Statistics of one chunk of a list of tensors: sum of squares, amax, and counts. One warp per
// chunk of up to 4096 elements; each element is read from memory once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/sum_tree.cuh"
#include "backends/cuda/instructions/halves.cuh"
#include "backends/cuda/tensor_list/list_codes.cuh"
#include "backends/cuda/tensor_list/list_launch.cuh"
#include "numerics/bits/decode.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "numerics/tensor_list/list.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::cuda {

using numerics::chunk_elements;
using numerics::chunk_statistics;
using numerics::list_chunk;
using numerics::list_row;

/// Amax and partial sums of a vector of 16 bytes of codes.
template <format_id F>
struct inspected_codes {
  static constexpr int bytes = spec_of(F).storage_bits / 8;
  static constexpr int count = 16 / bytes;  ///< elements of a vector

  /// Updates the maximum magnitude, a code, with a vector. For 16-bit formats each half has its own
  /// maximum.
  __device__ __forceinline__ static std::uint32_t combined(std::uint32_t amax, const uint4& v) {
    amax = larger_codes<F>(amax, v.x);
    amax = larger_codes<F>(amax, v.y);
    amax = larger_codes<F>(amax, v.z);
    return larger_codes<F>(amax, v.w);
  }

  /// The sum of the squares of two 16-bit codes.
  __device__ __forceinline__ static double pair_sum(std::uint32_t pair) {
    return hardware::square_pair(__uint_as_float(widen<F>(pair & 0xFFFFu)),
                                 __uint_as_float(widen<F>(pair >> 16)));
  }

  /// The sum of the vector's squares, as a subtree of the sum.
  __device__ __forceinline__ static double partial_sum(const uint4& v) {
    if constexpr (bytes == 4) {
      return hardware::add_partial_sums(
          hardware::square_pair(__uint_as_float(v.x), __uint_as_float(v.y)),
          hardware::square_pair(__uint_as_float(v.z), __uint_as_float(v.w)));
    } else {
      return hardware::add_partial_sums(hardware::add_partial_sums(pair_sum(v.x), pair_sum(v.y)),
                                        hardware::add_partial_sums(pair_sum(v.z), pair_sum(v.w)));
    }
  }
};

/// Sum of squares and maximum magnitude of a chunk, in every lane.
struct chunk_sums {
  std::uint64_t squares;  ///< binary64 bits; NaN is canonical
  std::uint32_t largest;  ///< code of the format without sign
};

/// A dense chunk, aligned to 16 bytes. One warp; each lane loads one vector of 16 bytes a turn. The
/// partial sum of lane l's vector in turn t is number 32 * t + l of its level (turn_tree). Full:
/// the chunk has 4096 elements.
template <format_id F, bool Full>
class dense_chunk {
  using codes = inspected_codes<F>;
  using tree = turn_tree<hardware>;
  static constexpr int turns = static_cast<int>(chunk_elements) / (32 * codes::count);
  static constexpr int turn_bits = turns == 32 ? 5 : 4;
  static_assert(1 << turn_bits == turns);
  /// 4 loads in flight in fp32, 8 in 16-bit formats.
  static constexpr int group_bits = codes::bytes == 4 ? 2 : 3;
  static constexpr int group = 1 << group_bits;

 public:
  __device__ __forceinline__ dense_chunk(const std::byte* data, int count, unsigned lane)
      : data_(data), count_(count), lane_(lane) {}

  __device__ __forceinline__ chunk_sums sums() {
    const double partial_sum = tree::of_chunk<turn_bits, group_bits>(
        [this](int first_turn) { return of_group(first_turn); });
    return {hardware::bits(partial_sum), __reduce_max_sync(all_lanes, largest_code<F>(amax_))};
  }

 private:
  __device__ __forceinline__ double of_group(int first_turn) {
    if (!Full && first_turn * 32 * codes::count >= count_) return 0.0;
    uint4 v[group];
#pragma unroll
    for (int i = 0; i < group; ++i) v[i] = load(first_turn + i);
    double partial_sums[group];
#pragma unroll
    for (int i = 0; i < group; ++i) {
      amax_ = codes::combined(amax_, v[i]);
      partial_sums[i] = codes::partial_sum(v[i]);
    }
    return tree::of_partial_sums<group_bits>(partial_sums);
  }

  /// The vector of the lane in a turn. Elements from count_ on are +0, which changes neither sum
  /// nor amax.
  __device__ __forceinline__ uint4 load(int turn) const {
    const int first = (turn * 32 + static_cast<int>(lane_)) * codes::count;
    if (Full || first + codes::count <= count_) {
      return __ldcs(reinterpret_cast<const uint4*>(data_ + first * codes::bytes));
    }
    std::uint32_t words[4] = {};
    for (int i = 0; first + i < count_; ++i) {
      const auto code =
          static_cast<std::uint32_t>(load_code(data_ + (first + i) * codes::bytes, codes::bytes));
      words[i * codes::bytes / 4] |= code << (i * codes::bytes % 4 * 8);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
  }

  const std::byte* data_;
  int count_;
  unsigned lane_;
  std::uint32_t amax_ = 0;
};

/// The address of element i of a tensor of format f.
__device__ __forceinline__ const std::byte* any_element(const list_row& row, const format_spec& f,
                                                        std::int64_t i) {
  return static_cast<const std::byte*>(row.data) +
         numerics::offset_of(row, i) * (f.storage_bits / 8);
}

/// Sum of squares and maximum of a chunk of any strides and alignment. One warp; each lane sums 128
/// neighbouring elements.
template <class Arithmetic>
__device__ inline chunk_sums any_sums(const list_row& row, const list_chunk& c, unsigned lane) {
  constexpr int each = static_cast<int>(chunk_elements) / 32;
  const format_spec f = spec_of(row.format);
  const std::uint32_t sign = std::uint32_t{1} << (f.storage_bits - 1);
  typename Arithmetic::partial_sum waiting[8];
  std::uint64_t inputs = 0;
  std::uint32_t largest = 0;
  for (int i = 0; i < each; ++i) {
    const std::int64_t at = lane * each + i;
    std::uint32_t code = 0;
    if (at < c.count) {
      code = static_cast<std::uint32_t>(
          load_code(any_element(row, f, c.first + at), f.storage_bits / 8));
    }
    largest = max(largest, code & (sign - 1));
    numerics::append_input(
        waiting, inputs, Arithmetic::square(numerics::decode<std::uint32_t>(f, code)),
        [](typename Arithmetic::partial_sum a, typename Arithmetic::partial_sum b) {
          return Arithmetic::add_partial_sums(a, b);
        });
  }
  const auto partial_sum = warp_partial_sum<Arithmetic>(waiting[7]);
  return {Arithmetic::bits(partial_sum), __reduce_max_sync(all_lanes, largest)};
}

/// Counts NaN and Inf, and for inspect_counts::distribution zeros, subnormals and exponents. Reads
/// the chunk's elements again, from the cache.
///
/// @param minimum the smallest normal number of the format, as binary32 bits
/// @param load returns element i as binary32 bits
template <inspect_counts Counts, class Load>
__device__ __forceinline__ void count_elements(int count, unsigned lane, std::uint32_t minimum,
                                               const Load& load, chunk_statistics& statistics,
                                               unsigned* exponents) {
  std::uint32_t nan = 0, inf = 0, zeros = 0, subnormals = 0;
#pragma unroll 1
  for (int i = static_cast<int>(lane); i < count; i += 32) {
    const std::uint32_t x = load(i);
    const std::uint32_t m = numerics::binary32::magnitude(x);
    nan += m > numerics::binary32::inf ? 1 : 0;
    inf += m == numerics::binary32::inf ? 1 : 0;
    if constexpr (Counts == inspect_counts::distribution) {
      zeros += m == 0 ? 1 : 0;
      subnormals += m != 0 && m < minimum ? 1 : 0;
      atomicAdd(&exponents[numerics::exponent_bucket(x)], 1u);
    }
  }
  statistics.nan = static_cast<std::uint16_t>(__reduce_add_sync(all_lanes, nan));
  statistics.inf = static_cast<std::uint16_t>(__reduce_add_sync(all_lanes, inf));
  if constexpr (Counts == inspect_counts::distribution) {
    statistics.zeros = static_cast<std::uint16_t>(__reduce_add_sync(all_lanes, zeros));
    statistics.subnormals = static_cast<std::uint16_t>(__reduce_add_sync(all_lanes, subnormals));
  }
}

/// Statistics of a chunk of a dense tensor aligned to 16 bytes, by the hardware; in every lane.
/// Reads the elements again only for the histogram, or if the chunk has NaN or Inf.
///
/// @param exponents histogram in shared memory; unused by inspect_counts::nonfinite
template <format_id F, inspect_counts Counts>
__device__ __forceinline__ chunk_statistics inspected_dense(const std::byte* data, int count,
                                                            unsigned lane, unsigned* exponents) {
  constexpr std::uint32_t minimum = numerics::min_normal(spec_of(F));
  const chunk_sums sums = count == chunk_elements ? dense_chunk<F, true>(data, count, lane).sums()
                                                  : dense_chunk<F, false>(data, count, lane).sums();
  const std::uint32_t amax = numerics::binary32::amax_bits(widen<F>(sums.largest));
  chunk_statistics statistics = {sums.squares, amax, 0, 0, 0, 0};
  if (Counts == inspect_counts::distribution || amax >= numerics::binary32::inf) {
    const auto load = [&](int i) {
      if constexpr (F == format_id::fp32) return reinterpret_cast<const std::uint32_t*>(data)[i];
      return widen<F>(reinterpret_cast<const std::uint16_t*>(data)[i]);
    };
    count_elements<Counts>(count, lane, minimum, load, statistics, exponents);
  }
  return statistics;
}

/// Statistics of a chunk of any format, strides and alignment; in every lane.
template <class Arithmetic, inspect_counts Counts>
__device__ __forceinline__ chunk_statistics inspected_any(const list_row& row, const list_chunk& c,
                                                          unsigned lane, unsigned* exponents) {
  const format_spec f = spec_of(row.format);
  const chunk_sums sums = any_sums<Arithmetic>(row, c, lane);
  const std::uint32_t amax =
      numerics::binary32::amax_bits(numerics::decode<std::uint32_t>(f, sums.largest));
  chunk_statistics statistics = {sums.squares, amax, 0, 0, 0, 0};
  if (Counts == inspect_counts::distribution || amax >= numerics::binary32::inf) {
    const auto load = [&](int i) {
      return numerics::decode<std::uint32_t>(
          f, static_cast<std::uint32_t>(
                 load_code(any_element(row, f, c.first + i), f.storage_bits / 8)));
    };
    count_elements<Counts>(static_cast<int>(c.count), lane, numerics::min_normal(f), load,
                           statistics, exponents);
  }
  return statistics;
}

}  // namespace samebits::cuda
