// Constants of the quantization kernels that were chosen by measurement, with the alternatives that
// were measured. Times are shares of a device copy of as many bytes (docs/benchmarks.md).
#pragma once

#include <cstdint>

#include "samebits/core/format.hpp"

namespace samebits::cuda {

/// Minimum resident blocks per multiprocessor: while some blocks wait at a barrier, others load.
/// Four blocks of 16-bit elements leave 64 registers per thread, two blocks of 32-bit elements 128.
template <format_id From>
inline constexpr int resident_blocks = spec_of(From).storage_bits == 16 ? 4 : 2;

/// Minimum resident blocks per multiprocessor of the kernels with statistics. Three blocks of
/// 16-bit elements were slower, 0.67 against 0.71 for 1 x 128 and 0.63 against 0.67 for 128 x 128,
/// although three blocks spill no registers.
template <format_id From>
inline constexpr int resident_blocks_with_statistics = spec_of(From).storage_bits == 16 ? 4 : 2;

/// Rows that one thread holds in a block tile, 8 elements of each: 256 threads hold 128 x 128
/// elements.
inline constexpr int rows_a_thread = 8;

/// Vectors of 8 elements that one thread holds in registers where each row has one scale.
inline constexpr int vectors_per_thread = 8;

/// Elements that one block of 256 threads holds in registers where each row has one scale. A dense
/// matrix of at most so many elements with one scale is quantized as one row, in one launch.
inline constexpr std::int64_t one_row_elements = 8 * vectors_per_thread * 256;

/// Columns of the longest row that the row kernel supports. The kernel reads all but the last span
/// of a row twice if the row does not fit a block's registers, the second time from the caches.
inline constexpr std::int64_t longest_row = std::int64_t{1} << 18;

/// Elements of a large tile that one warp of the general kernels reduces.
inline constexpr std::uint64_t span_elements = 4096;

}  // namespace samebits::cuda
