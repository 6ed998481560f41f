// Quantization in one pass over the matrix: a block takes 128 x 128 elements, or 64 x 256, finds
// the scales of the tiles in them through shared memory, and keeps the elements in registers
// meanwhile.
#include <cstdint>
#include <type_traits>

#include "backends/cuda/native/block_tiles.cuh"
#include "backends/cuda/native/patch.cuh"
#include "backends/cuda/native/strip_cast.cuh"
#include "backends/cuda/native/transposed.cuh"

namespace samebits::cuda {
namespace {

constexpr int rows_a_thread = 8;
constexpr int block_elements = block_threads * rows_a_thread * strip;

enum class shape { rows, squares, columns };  // 1 x G, G x G, G x 1

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

/// The codes of the thread's row i by the definition; zeros outside the matrix.
template <format_id From, format_id To, shape Shape>
__device__ __forceinline__ uint2 defined_codes(const patch_task& t, const place& at, int i,
                                               const block_factors<Shape>& factors) {
  if (i >= at.count) return make_uint2(0, 0);
  return defined_strip<From, To>(t, factors.first + i * factors.step,
                                 Shape == shape::columns ? 1 : 0, at.row + i, at.col);
}

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

/// Codes of a thread in shared memory, where they can be indexed; null where nobody needs them.
struct kept_codes {
  uint2* of_block;

  __device__ __forceinline__ void keep(int i, uint2 codes) const {
    if (of_block != nullptr) of_block[i * block_threads + threadIdx.x] = codes;
  }
  /// All threads come here; then the memory is free.
  __device__ __forceinline__ void get(uint2 (&codes)[rows_a_thread]) const {
    if (of_block == nullptr) return;
#pragma unroll
    for (int i = 0; i < rows_a_thread; ++i) codes[i] = of_block[i * block_threads + threadIdx.x];
    __syncthreads();
  }
};

/// Blocks that a multiprocessor must hold: while some wait at a barrier others load.
template <format_id From>
inline constexpr int resident_blocks = spec_of(From).storage_bits == 16 ? 4 : 2;

template <format_id From, format_id To, class Cast, shape Shape, access Access>
__global__ void __launch_bounds__(block_threads, resident_blocks<From>)
    block_tiles_kernel(const __grid_constant__ patch_task t) {
#if __CUDA_ARCH__ >= 890
  if (t.skip != nullptr && *t.skip != 0) return;
  extern __shared__ transposed_codes transposed[];  // one, or none
  __shared__ std::uint32_t maxima[most_tiles<Shape>];
  __shared__ tile_factor factors[most_tiles<Shape>];
  const place at = place_of(t, blockIdx.x);
  strip_of<From> x[rows_a_thread];
  load_strips<From, Access>(t, at.row, at.col, at.count, x);

  const unsigned tiles = static_cast<unsigned>(block_elements) >> (t.tile_rows + t.tile_cols);
  if constexpr (Shape != shape::rows) {
    for (unsigned i = threadIdx.x; i < tiles; i += block_threads) maxima[i] = 0;
  }
  maxima_of<From, Shape> mine(x);
  const bool finite = !__syncthreads_or(mine.reaches_inf());
  if (!finite) mine = maxima_of<From, Shape>(x, t, at.row, at.col);
  join_maxima<From, Shape>(t, at, mine, maxima);
  __syncthreads();
  bool by_definition = false;
  for (unsigned i = threadIdx.x; i < tiles; i += block_threads) {
    const std::uint64_t row = at.block_row + (i / at.tiles_across << t.tile_rows);
    const std::uint32_t col = at.block_col + (i % at.tiles_across << t.tile_cols);
    if (row >= t.rows || col >= t.cols) continue;
    const patch_scale s = scale_of_tile<From, To, Cast>(t, {maxima[i], !finite, finite});
    factors[i] = Cast::factor_of(s.scale);
    by_definition |= s.special;
    store_scale(t, s.scale, row >> t.tile_rows, col >> t.tile_cols);
  }
  by_definition = __syncthreads_or(by_definition);

  const block_factors<Shape> of_block{factors + at.tile,
                                      Shape == shape::rows ? at.tiles_across : 0};
  const kept_codes kept{t.codes_transposed == nullptr ? nullptr : &transposed[0].strip[0][0]};
  uint2 codes[rows_a_thread];
  if (!Cast::serves_all && by_definition) {
    code_rows<access::elements> rows(t, at);
#pragma unroll 1
    for (int i = 0; i < rows_a_thread; ++i) {
      const uint2 of_row = defined_codes<From, To>(t, at, i, of_block);
      rows.store(of_row);
      kept.keep(i, of_row);
    }
    kept.get(codes);
  } else if constexpr (Cast::field != 0) {
    using random = strip_words<Cast::field>;
    random drawn(t, t.index_of(at.row, at.col));
    code_rows<Access> rows(t, at);
#pragma unroll
    for (int i = 0; i < rows_a_thread; i += random::rows_at_once) {
      std::uint32_t words[random::rows_at_once][random::words];
      drawn.draw(words);
#pragma unroll
      for (int k = 0; k < random::rows_at_once; ++k) {
        codes[i + k] = Cast::template codes<From>(x[i + k], of_block.of_row(i + k), words[k]);
        rows.store(codes[i + k]);
      }
    }
  } else if constexpr (!std::is_same_v<Cast, defined_cast>) {
    code_rows<Access> rows(t, at);
#pragma unroll
    for (int i = 0; i < rows_a_thread; ++i) {
      codes[i] = Cast::template codes<From>(x[i], of_block.of_row(i));
      rows.store(codes[i]);
    }
  }
  if (t.codes_transposed != nullptr) {
    store_transposed(t, transposed[0], codes, at.lane, at.line, at.block_row, at.block_col);
  }
#endif
}

template <format_id From, format_id To, class Cast, access Access, shape Shape>
void launch_shape(const patch_task& t, cudaStream_t stream) {
  const std::size_t shared = t.codes_transposed != nullptr ? sizeof(transposed_codes) : 0;
  block_tiles_kernel<From, To, Cast, Shape, Access>
      <<<static_cast<unsigned>(block_count(t)), block_threads, shared, stream>>>(t);
}

template <format_id From, format_id To, class Cast, access Access = access::strips>
void launch_cast(const patch_task& t, cudaStream_t stream) {
  if (t.tile_rows == 0) return launch_shape<From, To, Cast, Access, shape::rows>(t, stream);
  if constexpr (Cast::field == 0) {
    if (t.tile_cols == 0) return launch_shape<From, To, Cast, Access, shape::columns>(t, stream);
    return launch_shape<From, To, Cast, Access, shape::squares>(t, stream);
  }
}

template <format_id From, format_id To>
void launch(const patch_task& t, cudaStream_t stream) {
  const bool drawn = t.cast.round == rounding::stochastic,
             divided = t.scale.math == scale_math::div;
  if (t.by_definition || (!t.aligned && (drawn || divided))) {
    return launch_cast<From, To, defined_cast, access::elements>(t, stream);
  }
  if (!t.aligned) return launch_cast<From, To, product_cast<To>, access::elements>(t, stream);
  if (divided) return launch_cast<From, To, quotient_cast<To>>(t, stream);
  if (!drawn) return launch_cast<From, To, product_cast<To>>(t, stream);
  switch (numerics::field_bits(t.random.k)) {
    case 8: return launch_cast<From, To, drawn_cast<To, 8>>(t, stream);
    case 16: return launch_cast<From, To, drawn_cast<To, 16>>(t, stream);
    default: return launch_cast<From, To, drawn_cast<To, 32>>(t, stream);
  }
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
