// Quantization in one pass over the matrix: a block takes 128 x 128 elements, or 64 x 256, finds
// the scales of the tiles in them through shared memory, and keeps the elements in registers
// meanwhile.
#include <cstdint>
#include <type_traits>

#include "backends/cuda/native/block_tiles.cuh"
#include "backends/cuda/native/patch_block.cuh"
#include "backends/cuda/native/strip_cast.cuh"
#include "backends/cuda/native/transposed.cuh"

namespace samebits::cuda {
namespace {

/// The codes of the thread's row i by the definition; zeros outside the matrix.
template <format_id From, format_id To, shape Shape>
__device__ __forceinline__ uint2 defined_codes(const patch_task& t, const place& at, int i,
                                               const block_factors<Shape>& factors) {
  if (i >= at.count) return make_uint2(0, 0);
  return defined_strip<From, To>(t, factors.first + i * factors.step,
                                 Shape == shape::columns ? 1 : 0, at.row + i, at.col);
}

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
