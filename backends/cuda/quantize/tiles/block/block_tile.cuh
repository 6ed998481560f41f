// Device functions of the kernels in which one block holds a block tile in registers: the
// coordinates of each thread, the amax of each tile, and the scale factors and codes of each
// thread. The scale factor of a tile is the binary32 number by which the kernel multiplies or
// divides the elements of the tile.
//
// A block of 256 threads holds 16384 elements, 8 rows of 8 elements per thread. 2^log2_lanes
// threads lie along a row. Example of log2_lanes = 4, a block tile of 128 x 128 elements:
//
//                lane 0     lane 1   ...   lane 15
//     columns    0..7       8..15          120..127
//     line 0     thread 0   thread 1  ...  thread 15     rows   0..7
//     line 1     thread 16  thread 17 ...  thread 31     rows   8..15
//     ...
//     line 15    thread 240           ...  thread 255    rows 120..127
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cuda/instructions/warp.cuh"
#include "backends/cuda/quantize/tiles/tile_codes.cuh"

namespace samebits::cuda {

/// Elements of a block tile.
inline constexpr int block_elements = block_threads * rows_a_thread * vector_length;

/// Shape of the tiles.
enum class shape { rows, square_tiles, columns };  // 1 x G, G x G, G x 1

/// Calls f.operator()<Shape>() for tiles of 2^tile_rows x 2^tile_cols elements.
template <class Function>
void visit_shape(int tile_rows, int tile_cols, const Function& f) {
  if (tile_rows == 0) return f.template operator()<shape::rows>();
  if (tile_cols == 0) return f.template operator()<shape::columns>();
  f.template operator()<shape::square_tiles>();
}

/// Maxima of a thread's elements: per column for tiles of one column, else per row.
template <format_id From, shape Shape>
using maxima_of = std::conditional_t<Shape == shape::columns, column_maxima<From>,
                                     row_maxima<From, rows_a_thread>>;

/// Maximum number of tiles in a block tile: 1024 tiles of 16 elements of a row or column, or 64
/// square tiles of 16 x 16.
template <shape Shape>
inline constexpr int max_tiles =
    Shape == shape::square_tiles ? block_elements / 256 : block_elements / 16;

/// The coordinates of a thread. The thread holds `rows_a_thread` vectors below one another, the
/// first at (row, col) of the matrix.
///
/// - lane, line: coordinates of the thread in its block tile; 2^t.log2_lanes lanes per line
/// - block_row, block_col: the first element of the block tile
/// - tiles_per_row: tiles along a row of the block tile
/// - tile: number of the tile that holds the thread's first element, in row-major order
struct block_coordinates {
  unsigned lane, line;
  std::uint64_t block_row, row;
  std::uint32_t block_col, col;
  unsigned tiles_per_row, tile;
  int count;  ///< rows of the thread that lie in the matrix

  __device__ __forceinline__ block_coordinates(const tile_task& t, unsigned row_block,
                                               unsigned col_block)
      : lane(threadIdx.x & ((1u << t.log2_lanes) - 1)),
        line(threadIdx.x >> t.log2_lanes),
        block_row(std::uint64_t{row_block} * (block_threads * rows_a_thread >> t.log2_lanes)),
        row(block_row + line * rows_a_thread),
        block_col((col_block << t.log2_lanes) * vector_length),
        col(block_col + lane * vector_length),
        tiles_per_row((1u << t.log2_lanes) * vector_length >> t.tile_cols),
        tile((line * rows_a_thread >> t.tile_rows) * tiles_per_row +
             (lane * vector_length >> t.tile_cols)),
        count(col >= t.cols || row >= t.rows
                  ? 0
                  : static_cast<int>(min(t.rows - row, std::uint64_t{rows_a_thread}))) {}
};

/// The coordinates of the thread in block tile `block`. Consecutive blocks follow a row of block
/// tiles. An order in bands of several rows of block tiles, meant for the transposed stores, was
/// not faster.
__device__ __forceinline__ block_coordinates block_coordinates_of(const tile_task& t,
                                                                  unsigned block) {
  return block_coordinates(t, block / t.col_blocks, block % t.col_blocks);
}

/// Combines the threads' maxima into the maximum of each tile of the block tile, in shared memory.
/// tiles[] must start as zeros unless tiles have one row. All lanes of a warp must call.
template <format_id From, shape Shape>
__device__ __forceinline__ void combine_maxima(const tile_task& t, const block_coordinates& at,
                                               maxima_of<From, Shape> mine, std::uint32_t* tiles) {
  if constexpr (Shape == shape::columns) {
#pragma unroll
    for (int c = 0; c < vector_length; ++c) {
      const std::uint32_t code = mine.maximum.code(c);
      const std::uint32_t maximum = max(code, __shfl_xor_sync(all_lanes, code, 16));
      if (threadIdx.x % 32 < 16) atomicMax(&tiles[at.tile + c], maximum);
    }
  } else {
    const int log2_tile_lanes = t.tile_cols - 3;
    mine.combine_lanes(log2_tile_lanes);
    if ((at.lane & ((1u << log2_tile_lanes) - 1)) != 0) return;
    if constexpr (Shape == shape::rows) {
#pragma unroll
      for (int i = 0; i < rows_a_thread; ++i) {
        tiles[at.tile + i * at.tiles_per_row] = mine.of_row(i);
      }
    } else {
      atomicMax(&tiles[at.tile], mine.of_all());
    }
  }
}

/// The factors of a thread's vectors, in shared memory; `first` is the factor of its first element.
template <shape Shape>
struct block_factors {
  const tile_factor* first;
  unsigned step;  ///< distance to the factor of the next row

  __device__ __forceinline__ auto of_row(int i) const {
    if constexpr (Shape == shape::columns) {
      return factor_of_each(first);
    } else {
      return one_factor{first[i * step]};
    }
  }
};

/// Stores a thread's vectors of codes, row by row from the first row downwards.
template <access Access>
class code_rows {
 public:
  __device__ __forceinline__ code_rows(const tile_task& t, const block_coordinates& at)
      : to_(t.codes.at(at.row, 0) + at.col),
        row_bytes_(t.codes.row_bytes),
        left_(t.codes.data == nullptr ? 0 : at.count),
        columns_(t.cols - at.col) {}

  __device__ __forceinline__ void store(uint2 codes) {
    if (left_-- > 0) store_codes<Access>(to_, columns_, codes);
    to_ += row_bytes_;
  }

 private:
  std::byte* to_;
  std::uint64_t row_bytes_;
  int left_;
  std::uint32_t columns_;
};

}  // namespace samebits::cuda
