// Statistics of a quantization on the device: the types and combination steps of partial sums and
// counts, and the launch that combines all partial statistics of a call.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/launch.cuh"
#include "backends/cuda/instructions/warp.cuh"
#include "numerics/quantize/statistics.hpp"
#include "samebits/quantize.hpp"

namespace samebits::cuda {

using numerics::quantize_counts;
using numerics::quantized_element;

/// One partial sum of each of the two sums of contract §6: sum of x^2 (signal) and of (x - x')^2
/// (noise), x' being the dequantized code.
struct quantize_sums {
  double signal = 0, noise = 0;
};

/// The combined partial sum of two neighbours, `a` the left one.
__device__ __forceinline__ quantize_sums combined(const quantize_sums& a, const quantize_sums& b) {
  return {__dadd_rn(a.signal, b.signal), __dadd_rn(a.noise, b.noise)};
}

/// The value held by the lane whose number differs in the bit `apart`.
__device__ __forceinline__ quantize_sums of_lane(const quantize_sums& sums, int apart) {
  return {__shfl_xor_sync(all_lanes, sums.signal, apart),
          __shfl_xor_sync(all_lanes, sums.noise, apart)};
}

/// Combines the partial sums of `lanes` neighbouring lanes, a power of two, in lane order. Every
/// lane gets the result.
__device__ __forceinline__ quantize_sums combined_lanes(quantize_sums sums, int lanes) {
  for (int apart = 1; apart < lanes; apart <<= 1) sums = combined(sums, of_lane(sums, apart));
  return sums;
}

/// The sums of a quantization, for the trees of sum_tree.cuh.
struct paired_sums {
  using partial_sum = quantize_sums;
  __device__ __forceinline__ static partial_sum add_partial_sums(const partial_sum& a,
                                                                 const partial_sum& b) {
    return combined(a, b);
  }
  __device__ __forceinline__ static partial_sum no_partial_sum() { return {}; }
};

/// The value held by the lane whose number differs in the bit `apart`.
__device__ __forceinline__ quantize_counts of_lane(const quantize_counts& c, int apart) {
  const auto other = [apart](auto n) { return __shfl_xor_sync(all_lanes, n, apart); };
  return {other(c.zeros),     other(c.nan),  other(c.inf),        other(c.underflowed),
          other(c.saturated), other(c.amax), other(c.min_nonzero)};
}

__device__ __forceinline__ double double_of(std::uint32_t bits) {
  return static_cast<double>(__uint_as_float(bits));
}

/// The inputs of the two sums for one element: x^2 and (x - restored)^2; +0 if either number is not
/// finite.
__device__ __forceinline__ quantize_sums input_of(std::uint32_t x, std::uint32_t restored) {
  if (!numerics::adds_squares(x, restored)) return {};
  const double value = double_of(x), error = __dsub_rn(value, double_of(restored));
  return {__dmul_rn(value, value), __dmul_rn(error, error)};
}

/// Partial statistics in the workspace. The partial sums (`partial_sums`) are in element order.
/// Each one is the sum of a complete subtree of contract §6; only the last subtree may be
/// incomplete.
struct statistics_parts {
  quantize_sums* partial_sums;
  quantize_counts* counts;
  std::uint64_t partial_sum_count, count_count;
  std::uint32_t* arrived;  ///< finished blocks; 0 before launch_total()
};

/// Bytes of the partial statistics and of the further levels that launch_total() writes.
std::size_t statistics_bytes(std::uint64_t partial_sums, std::uint64_t counts);
/// The partial statistics at the beginning of `memory`, which is aligned to 16 bytes.
statistics_parts parts_at(std::byte* memory, std::uint64_t partial_sums, std::uint64_t counts);
/// Enqueues the kernels that combine all partial statistics into *statistics. The kernel that
/// writes the partial statistics must also set *parts.arrived to 0.
///
/// @param elements elements of the matrix, reported in the statistics
/// @param skip null or device memory; nothing is written if *skip is not 0
void launch_total(const statistics_parts& parts, std::uint64_t elements,
                  quantize_statistics* statistics, const std::uint32_t* skip, cudaStream_t stream);

}  // namespace samebits::cuda
