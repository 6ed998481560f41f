// Constants of the quantization kernels that were chosen by measurement, each with what it was
// measured against. Times are shares of a device copy of as many bytes (docs/benchmarks.md).
#pragma once

#include <cstdint>

#include "samebits/core/format.hpp"

namespace samebits::cuda {

/// Blocks that a multiprocessor must hold: while some wait at a barrier others load. Four blocks of
/// 16-bit elements leave 64 registers a thread, two of 32-bit elements 128.
template <format_id From>
inline constexpr int resident_blocks = spec_of(From).storage_bits == 16 ? 4 : 2;

/// The same with statistics. Three blocks of 16-bit elements were slower, 0.67 against 0.71 for
/// 1 x 128 and 0.63 against 0.67 for 128 x 128, although nothing is spilled then.
template <format_id From>
inline constexpr int resident_blocks_with_statistics = spec_of(From).storage_bits == 16 ? 4 : 2;

/// Rows of eight elements that a thread of a block holds: with 256 threads 128 x 128 elements.
inline constexpr int rows_a_thread = 8;

/// Strips of a row that a thread holds in registers at once, where a scale is of a whole row.
inline constexpr int strips_a_thread = 8;

/// Columns of the longest row that the row kernel takes. It reads a row that does not fit a block's
/// registers twice, the second time from the caches.
inline constexpr std::int64_t longest_row = std::int64_t{1} << 18;

/// Elements of a large tile for a warp of the general kernels.
inline constexpr std::uint64_t piece_elements = 4096;

}  // namespace samebits::cuda
