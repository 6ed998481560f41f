// Statistics of one chunk of a list of tensors: sum of squares, amax, and counts. One warp per
// chunk of up to 4096 elements; each element is read from memory once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/sum_tree.cuh"
#include "backends/cuda/instructions/halves.cuh"
#include "backends/cuda/reductions/chunk_sum.cuh"
#include "backends/cuda/tensor_list/list_any.cuh"
#include "backends/cuda/tensor_list/list_codes.cuh"
#include "backends/cuda/tensor_list/list_launch.cuh"
#include "numerics/bits/decode.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "numerics/tensor_list/list.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::cuda {

using numerics::chunk_statistics;
using numerics::list_chunk;
using numerics::list_row;

/// Sum of squares and maximum magnitude of a chunk, in every lane.
struct chunk_sums {
  std::uint64_t squares;  ///< binary64 bits; NaN is canonical
  std::uint32_t largest;  ///< code of the format without sign
};

/// A dense chunk, aligned to 16 bytes. One warp. Full: the chunk has 4096 elements.
template <format_id F, bool Full>
__device__ __forceinline__ chunk_sums dense_sums(const std::byte* data, int count, unsigned lane) {
  // 4 loads in flight in fp32, 8 in 16-bit formats.
  constexpr int group_bits = spec_of(F).storage_bits == 32 ? 2 : 3;
  std::uint32_t largest = 0;
  const chunk_sum<F, reduction::sum_of_squares, double, group_bits, Full> squares(data, nullptr,
                                                                                  count, lane);
  const double partial_sum = squares.partial_sum([&](const uint4& v) {
    for (const std::uint32_t word : {v.x, v.y, v.z, v.w}) {
      largest = larger_codes<F>(largest, word);
    }
  });
  return {hardware::bits(partial_sum), __reduce_max_sync(all_lanes, largest_code<F>(largest))};
}

/// Sum of squares and maximum of a chunk of any strides and alignment. One warp; each lane sums 128
/// neighbouring elements.
template <class Arithmetic>
__device__ inline chunk_sums any_sums(const list_row& row, const list_chunk& c, unsigned lane) {
  constexpr int each = static_cast<int>(chunk_elements) / 32;
  const any_codes codes{row, c.first};
  const std::uint32_t sign = std::uint32_t{1} << (codes.format.storage_bits - 1);
  typename Arithmetic::partial_sum waiting[8];
  std::uint64_t inputs = 0;
  std::uint32_t largest = 0;
  for (int i = 0; i < each; ++i) {
    const std::int64_t at = lane * each + i;
    std::uint32_t code = 0;
    if (at < c.count) {
      code = codes.load(at);
    }
    largest = max(largest, code & (sign - 1));
    numerics::append_input(
        waiting, inputs, Arithmetic::square(numerics::decode<std::uint32_t>(codes.format, code)),
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
  const chunk_sums sums = count == chunk_elements ? dense_sums<F, true>(data, count, lane)
                                                  : dense_sums<F, false>(data, count, lane);
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
  const any_codes codes{row, c.first};
  const format_spec& f = codes.format;
  const chunk_sums sums = any_sums<Arithmetic>(row, c, lane);
  const std::uint32_t amax =
      numerics::binary32::amax_bits(numerics::decode<std::uint32_t>(f, sums.largest));
  chunk_statistics statistics = {sums.squares, amax, 0, 0, 0, 0};
  if (Counts == inspect_counts::distribution || amax >= numerics::binary32::inf) {
    const auto load = [&](int i) { return numerics::decode<std::uint32_t>(f, codes.load(i)); };
    count_elements<Counts>(static_cast<int>(c.count), lane, numerics::min_normal(f), load,
                           statistics, exponents);
  }
  return statistics;
}

}  // namespace samebits::cuda
