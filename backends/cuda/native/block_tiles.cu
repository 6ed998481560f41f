// Quantization in one pass over the matrix: a block takes 128 x 128 elements, or 64 x 256, finds
// the scales of the tiles in them through shared memory, and keeps the elements in registers
// meanwhile.
#include <cstdint>

#include "backends/cuda/native/block_tiles.cuh"
#include "backends/cuda/native/patch.cuh"
#include "backends/cuda/native/strip_cast.cuh"
#include "backends/cuda/native/transposed.cuh"

namespace samebits::cuda {
namespace {

constexpr int rows_a_thread = 8;
constexpr int block_elements = block_threads * rows_a_thread * strip;

enum class shape { rows, squares, columns };  // 1 x G, G x G, G x 1

template <format_id From>
using maxima_of = row_maxima<From, rows_a_thread>;

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

  __device__ __forceinline__ explicit place(const patch_task& t)
      : lane(threadIdx.x & ((1u << t.lanes) - 1)),
        line(threadIdx.x >> t.lanes),
        block_row(std::uint64_t{blockIdx.x / t.col_blocks} *
                  (block_threads * rows_a_thread >> t.lanes)),
        row(block_row + line * rows_a_thread),
        block_col((blockIdx.x % t.col_blocks << t.lanes) * strip),
        col(block_col + lane * strip),
        tiles_across((1u << t.lanes) * strip >> t.tile_cols),
        tile((line * rows_a_thread >> t.tile_rows) * tiles_across + (lane * strip >> t.tile_cols)) {
  }

  __device__ __forceinline__ bool inside(const patch_task& t, int i) const {
    return row + i < t.rows && col < t.cols;
  }
};

/// Joins the maxima of the block's tiles in `maxima`, which starts as zeros except for rows.
template <format_id From, shape Shape>
__device__ __forceinline__ void join_maxima(const patch_task& t, const place& at,
                                            const strip_of<From> (&x)[rows_a_thread],
                                            maxima_of<From> of_rows, bool finite,
                                            std::uint32_t* maxima) {
  if constexpr (Shape == shape::columns) {
#pragma unroll
    for (int c = 0; c < strip; ++c) {
      std::uint32_t most = 0;
#pragma unroll
      for (int i = 0; i < rows_a_thread; ++i) {
        std::uint32_t code = x[i].code(c) & maxima_of<From>::magnitude;
        if (!finite) code = counted_code<From>(t, code, at.row + i, at.col + c);
        most = max(most, code);
      }
      most = max(most, __shfl_xor_sync(0xFFFFFFFFu, most, 16));
      if (threadIdx.x % 32 < 16) atomicMax(&maxima[at.tile + c], most);
    }
    return;
  }
  if (!finite) of_rows = maxima_of<From>(x, t, at.row, at.col);
  const int lanes = t.tile_cols - 3;  // log2 of those of a tile
  if constexpr (Shape == shape::rows) {
    of_rows.join_lanes(lanes);
    if ((at.lane & ((1u << lanes) - 1)) != 0) return;
#pragma unroll
    for (int i = 0; i < rows_a_thread; ++i) {
      maxima[at.tile + i * at.tiles_across] = of_rows.of_row(i);
    }
  } else {
    std::uint32_t most = of_rows.of_all();
    for (int apart = 1 << lanes >> 1; apart > 0; apart >>= 1) {
      most = max(most, __shfl_xor_sync(0xFFFFFFFFu, most, apart));
    }
    most = max(most, __shfl_xor_sync(0xFFFFFFFFu, most, 16));
    if ((threadIdx.x % 32 & (((1u << lanes) - 1) | 16u)) == 0) atomicMax(&maxima[at.tile], most);
  }
}

template <format_id From, format_id To, class Cast, shape Shape>
__global__ void __launch_bounds__(block_threads)
    block_tiles_kernel(const __grid_constant__ patch_task t) {
#if __CUDA_ARCH__ >= 890
  if (t.skip != nullptr && *t.skip != 0) return;
  extern __shared__ transposed_codes transposed[];  // one, or none
  __shared__ std::uint32_t maxima[most_tiles<Shape>];
  __shared__ tile_scale scales[most_tiles<Shape>];
  const place at(t);
  strip_of<From> x[rows_a_thread];
#pragma unroll
  for (int i = 0; i < rows_a_thread; ++i) x[i] = load_strip<From>(t, at.row + i, at.col);

  const unsigned tiles = static_cast<unsigned>(block_elements) >> (t.tile_rows + t.tile_cols);
  if constexpr (Shape != shape::rows) {
    for (unsigned i = threadIdx.x; i < tiles; i += block_threads) maxima[i] = 0;
  }
  const maxima_of<From> of_rows(x);
  const bool finite = !__syncthreads_or(of_rows.reaches_inf());
  join_maxima<From, Shape>(t, at, x, of_rows, finite, maxima);
  __syncthreads();
  bool by_definition = false;
  for (unsigned i = threadIdx.x; i < tiles; i += block_threads) {
    const std::uint64_t row = at.block_row + (i / at.tiles_across << t.tile_rows);
    const std::uint32_t col = at.block_col + (i % at.tiles_across << t.tile_cols);
    if (row >= t.rows || col >= t.cols) continue;
    const patch_scale s = scale_of_tile<From, To, Cast>(t, {maxima[i], !finite, finite});
    scales[i] = s.scale;
    by_definition |= s.special;
    store_scale(t, s.scale, row >> t.tile_rows, col >> t.tile_cols);
  }
  by_definition = __syncthreads_or(by_definition);

  const auto scales_of_row = [&](int i) {
    if constexpr (Shape == shape::columns)
      return scale_of_each{scales + at.tile};
    else if constexpr (Shape == shape::rows)
      return one_scale{scales[at.tile + i * at.tiles_across]};
    else
      return one_scale{scales[at.tile]};
  };
  uint2 codes[rows_a_thread];
  if (by_definition) {
#pragma unroll
    for (int i = 0; i < rows_a_thread; ++i) {
      codes[i] = make_uint2(0, 0);
      if (at.inside(t, i)) {
        codes[i] = defined_strip<From, To>(t, scales_of_row(i), at.row + i, at.col);
      }
    }
  } else {
    convert_strips<From, Cast>(t, at.row, at.col, x, scales_of_row, codes);
  }
  if (t.codes != nullptr) {
#pragma unroll
    for (int i = 0; i < rows_a_thread; ++i) {
      if (!at.inside(t, i)) continue;
      store_codes(t.codes + (at.row + i) * t.codes_row_bytes + at.col, t.aligned, t.cols - at.col,
                  codes[i]);
    }
  }
  if (t.codes_transposed != nullptr) {
    store_transposed(t, transposed[0], codes, at.lane, at.line, at.block_row, at.block_col);
  }
#endif
}

template <format_id From, format_id To, class Cast, shape Shape>
void launch_shape(const patch_task& t, cudaStream_t stream) {
  const std::size_t shared = t.codes_transposed != nullptr ? sizeof(transposed_codes) : 0;
  block_tiles_kernel<From, To, Cast, Shape>
      <<<static_cast<unsigned>(block_count(t)), block_threads, shared, stream>>>(t);
}

template <format_id From, format_id To, class Cast>
void launch_cast(const patch_task& t, cudaStream_t stream) {
  if (t.tile_rows == 0) return launch_shape<From, To, Cast, shape::rows>(t, stream);
  if constexpr (Cast::field == 0) {
    if (t.tile_cols == 0) return launch_shape<From, To, Cast, shape::columns>(t, stream);
    return launch_shape<From, To, Cast, shape::squares>(t, stream);
  }
}

template <format_id From, format_id To>
void launch(const patch_task& t, cudaStream_t stream) {
  if (t.cast.round == rounding::stochastic && !t.by_definition) {
    switch (numerics::field_bits(t.random.k)) {
      case 8: return launch_cast<From, To, drawn_cast<To, 8>>(t, stream);
      case 16: return launch_cast<From, To, drawn_cast<To, 16>>(t, stream);
      default: return launch_cast<From, To, drawn_cast<To, 32>>(t, stream);
    }
  }
  if (t.scale.math == scale_math::div) {
    return launch_cast<From, To, quotient_cast<To>>(t, stream);
  }
  return launch_cast<From, To, product_cast<To>>(t, stream);
}

template <format_id From>
void launch_to(const patch_task& t, format_id to, cudaStream_t stream) {
  if (to == format_id::e4m3) {
    launch<From, format_id::e4m3>(t, stream);
  } else {
    launch<From, format_id::e5m2>(t, stream);
  }
}

}  // namespace

std::uint64_t block_count(const patch_task& t) {
  const auto rows = static_cast<std::uint64_t>(block_threads * rows_a_thread >> t.lanes);
  return (t.rows + rows - 1) / rows * t.col_blocks;
}

void launch_block_tiles(const patch_task& t, format_id from, format_id to, cudaStream_t stream) {
  switch (from) {
    case format_id::fp32: return launch_to<format_id::fp32>(t, to, stream);
    case format_id::fp16: return launch_to<format_id::fp16>(t, to, stream);
    default: return launch_to<format_id::bf16>(t, to, stream);
  }
}

}  // namespace samebits::cuda
