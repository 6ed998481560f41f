// What the kernels share whose blocks hold a patch of the matrix: where its threads are, how the
// tiles in it get their maxima and the threads their factors and codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cuda/quantize/tiles/patch.cuh"

namespace samebits::cuda {

inline constexpr int block_elements = block_threads * rows_a_thread * strip;

enum class shape { rows, squares, columns };  // 1 x G, G x G, G x 1

/// Calls f.operator()<Shape>() for the shape of tiles of 2^tile_rows x 2^tile_cols.
template <class Function>
void visit_shape(int tile_rows, int tile_cols, const Function& f) {
  if (tile_rows == 0) return f.template operator()<shape::rows>();
  if (tile_cols == 0) return f.template operator()<shape::columns>();
  f.template operator()<shape::squares>();
}

template <format_id From, shape Shape>
using maxima_of = std::conditional_t<Shape == shape::columns, column_maxima<From>,
                                     row_maxima<From, rows_a_thread>>;

/// The tiles of a block: at most 1024 rows or columns of 16 elements, or 64 squares.
template <shape Shape>
inline constexpr int most_tiles =
    Shape == shape::squares ? block_elements / 256 : block_elements / 16;

/// Where a thread is: its strips begin at (row, col), and their first element lies in tile `tile`
/// of the block's.
struct place {
  unsigned lane, line;
  std::uint64_t block_row, row;
  std::uint32_t block_col, col;
  unsigned tiles_across, tile;
  int count;  ///< strips in the matrix

  __device__ __forceinline__ place(const patch_task& t, unsigned row_block, unsigned col_block)
      : lane(threadIdx.x & ((1u << t.lanes) - 1)),
        line(threadIdx.x >> t.lanes),
        block_row(std::uint64_t{row_block} * (block_threads * rows_a_thread >> t.lanes)),
        row(block_row + line * rows_a_thread),
        block_col((col_block << t.lanes) * strip),
        col(block_col + lane * strip),
        tiles_across((1u << t.lanes) * strip >> t.tile_cols),
        tile((line * rows_a_thread >> t.tile_rows) * tiles_across + (lane * strip >> t.tile_cols)),
        count(col >= t.cols || row >= t.rows
                  ? 0
                  : static_cast<int>(min(t.rows - row, std::uint64_t{rows_a_thread}))) {}
};

/// Where block `block` is. Blocks go along the rows; bands of several below one another, for the
/// sake of what is written transposed, were not faster.
__device__ __forceinline__ place place_of(const patch_task& t, unsigned block) {
  return place(t, block / t.col_blocks, block % t.col_blocks);
}

/// Joins the threads' maxima to those of the block's tiles in `tiles`, which starts as zeros except
/// for rows.
template <format_id From, shape Shape>
__device__ __forceinline__ void join_maxima(const patch_task& t, const place& at,
                                            maxima_of<From, Shape> mine, std::uint32_t* tiles) {
  if constexpr (Shape == shape::columns) {
#pragma unroll
    for (int c = 0; c < strip; ++c) {
      const std::uint32_t code = mine.most.code(c);
      const std::uint32_t most = max(code, __shfl_xor_sync(0xFFFFFFFFu, code, 16));
      if (threadIdx.x % 32 < 16) atomicMax(&tiles[at.tile + c], most);
    }
  } else {
    const int lanes = t.tile_cols - 3;  // log2 of those of a tile
    mine.join_lanes(lanes);
    if ((at.lane & ((1u << lanes) - 1)) != 0) return;
    if constexpr (Shape == shape::rows) {
#pragma unroll
      for (int i = 0; i < rows_a_thread; ++i) {
        tiles[at.tile + i * at.tiles_across] = mine.of_row(i);
      }
    } else {
      atomicMax(&tiles[at.tile], mine.of_all());
    }
  }
}

/// The factors of a thread's strips: `first` is that of its first element.
template <shape Shape>
struct block_factors {
  const tile_factor* first;
  unsigned step;  ///< to the factor of the next row

  __device__ __forceinline__ auto of_row(int i) const {
    if constexpr (Shape == shape::columns) {
      return factor_of_each(first);
    } else {
      return one_factor{first[i * step]};
    }
  }
};

/// Rows of codes of a thread, stored one after the other.
template <access Access>
class code_rows {
 public:
  __device__ __forceinline__ code_rows(const patch_task& t, const place& at)
      : to_(t.codes + at.row * t.codes_row_bytes + at.col),
        row_bytes_(t.codes_row_bytes),
        left_(t.codes == nullptr ? 0 : at.count),
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
