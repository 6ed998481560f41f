// A quantization with statistics as its kernel takes it, and where in the matrix a warp is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/quantize/statistics.cuh"
#include "backends/cuda/quantize/tiles/patch_block.cuh"
#include "numerics/quantize/counted.hpp"

namespace samebits::cuda {

/// A patch has two halves, in each of which a lane has four strips side by side; the lanes are
/// 2^lanes along a row and the others below each other.
inline constexpr int halves = 2, strips_of_half = 4;
inline constexpr unsigned lane_cols = strips_of_half * strip;
inline constexpr unsigned warps_of_block = block_threads / 32;
inline constexpr int least_lanes = 2;  // so that each has one of the four sums of two rows

/// Patches side by side whose rows have nodes in common, log2. Patches of squares are narrow; those
/// of rows are better fetched in the order of memory.
template <shape Shape>
inline constexpr int most_grouped = Shape == shape::rows ? 2 : 4;

/// A launch: the quantization, its parts, and what does not change from patch to patch.
struct counted_launch {
  patch_task t;
  statistics_parts parts;
  int lanes;                    ///< log2 of those along a row of a patch
  unsigned row_blocks, across;  ///< groups below each other and side by side
  unsigned down, right;         ///< from a group of a walker to its next one
  int grouped;                  ///< log2 of the patches of a group, at most most_grouped
  unsigned group_patches;
  /// Of 16-bit formats, codes: amaxes of plain_amaxes() of tiles without a magnitude of top_binade.
  numerics::magnitude_range usual;
  bool wide_codes;           ///< rows of codes start at 16 bytes
  bool plain_scales;         ///< fp32, row-wise alone
  std::uint64_t scale_step;  ///< bytes from the scale of a patch's first tile to the next one's
};

/// Where a lane is in its warp's patch; Lanes is log2 of those along a row, or 0 where that is
/// c.lanes. Patches of squares are one below the other for the warps of a block.
template <shape Shape, int Lanes>
struct warp_place {
  unsigned row_block, col_block;

  __device__ __forceinline__ static int lanes(const counted_launch& c) {
    return Lanes == 0 ? c.lanes : Lanes;
  }
  __device__ __forceinline__ static unsigned lane() { return threadIdx.x % 32; }
  __device__ __forceinline__ static unsigned across(const counted_launch& c) {
    return lane() & ((1u << lanes(c)) - 1);
  }
  /// Rows of a half.
  __device__ __forceinline__ static unsigned lines(const counted_launch& c) {
    return 32u >> lanes(c);
  }
  __device__ __forceinline__ std::uint64_t first_row(const counted_launch& c) const {
    const std::uint64_t patches =
        Shape == shape::rows ? std::uint64_t{row_block}
                             : std::uint64_t{row_block} * warps_of_block + threadIdx.x / 32;
    return patches * (halves * lines(c));
  }
  /// Of the lane in a half.
  __device__ __forceinline__ std::uint64_t row(const counted_launch& c, int half) const {
    return first_row(c) + half * lines(c) + (lane() >> lanes(c));
  }
  __device__ __forceinline__ std::uint32_t first_col(const counted_launch& c) const {
    return (col_block << lanes(c)) * lane_cols;
  }
  /// Of the lane.
  __device__ __forceinline__ std::uint32_t col(const counted_launch& c) const {
    return first_col(c) + across(c) * lane_cols;
  }
  /// Rows of the patch that lie in the matrix.
  __device__ __forceinline__ unsigned inside(const counted_launch& c) const {
    const std::uint64_t first = first_row(c), rows = halves * lines(c);
    return first >= c.t.rows ? 0 : static_cast<unsigned>(min(c.t.rows - first, rows));
  }
};

/// The groups of a walker, a warp or a block: every so many-th.
template <shape Shape, int Lanes>
struct group_walk {
  unsigned row_block, group;  ///< of the row of groups

  __device__ __forceinline__ explicit group_walk(const counted_launch& c) {
    // What is left over of the groups is shared out to all blocks.
    const unsigned walker =
        Shape == shape::rows ? threadIdx.x / 32 * gridDim.x + blockIdx.x : blockIdx.x;
    row_block = walker / c.across, group = walker % c.across;
  }
  __device__ __forceinline__ bool ends(const counted_launch& c) const {
    return row_block >= c.row_blocks;
  }
  /// Of a patch of the group.
  __device__ __forceinline__ warp_place<Shape, Lanes> place(const counted_launch& c,
                                                            unsigned patch) const {
    return {row_block, group * c.group_patches + patch};
  }
  __device__ __forceinline__ void advance(const counted_launch& c) {
    row_block += c.down;
    group += c.right;
    if (group >= c.across) group -= c.across, ++row_block;
  }
};

}  // namespace samebits::cuda
