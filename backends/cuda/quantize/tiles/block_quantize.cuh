// What a block does that quantizes its patch of a matrix in one pass.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cuda/quantize/tiles/patch_block.cuh"
#include "backends/cuda/quantize/tiles/strip_cast.cuh"
#include "backends/cuda/quantize/tiles/transposed.cuh"

namespace samebits::cuda {

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

/// Rounds the thread's strips by the definition.
template <format_id From, format_id To, shape Shape>
__device__ __forceinline__ void store_defined(const patch_task& t, const place& at,
                                              const block_factors<Shape>& of_block,
                                              const kept_codes& kept) {
  code_rows<access::elements> rows(t, at);
#pragma unroll 1
  for (int i = 0; i < rows_a_thread; ++i) {
    const uint2 of_row = defined_codes<From, To>(t, at, i, of_block);
    rows.store(of_row);
    kept.keep(i, of_row);
  }
}

/// The same as a call. `factors` are those of the block's tiles.
template <format_id From, format_id To, shape Shape>
__device__ __noinline__ void call_store_defined(const patch_task& t, unsigned block,
                                                const tile_factor* factors, uint2* kept) {
  const place at = place_of(t, block);
  const block_factors<Shape> of_block{factors + at.tile,
                                      Shape == shape::rows ? at.tiles_across : 0};
  store_defined<From, To, Shape>(t, at, of_block, kept_codes{kept});
}

/// Where a kernel's task lies. One in shared memory takes registers, and it hides that its pointers
/// are to global memory, so that factors might change with every store of codes and be read again.
enum class task_in { parameters, shared_memory };

/// What to do about it. Elements of 16 bits leave no registers: there the definition is called;
/// inlined it had them spilled in blocks that never need it. To be told about the pointers costs
/// some registers, too, and is worth them where a thread has more than one factor or 128 registers.
template <format_id From, shape Shape, task_in Task>
struct care_of {
  static constexpr bool shared = Task == task_in::shared_memory;
  static constexpr bool calls = shared && spec_of(From).storage_bits == 16;
  static constexpr bool tells = shared && (!calls || Shape == shape::columns);

  __device__ __forceinline__ static void global(const void* p) {
    if constexpr (tells) __builtin_assume(__isGlobal(p));
  }
};

/// Of a block: its tiles' maxima and factors.
template <shape Shape>
struct block_memory {
  std::uint32_t maxima[most_tiles<Shape>];
  tile_factor factors[most_tiles<Shape>];
};

/// The scale stage. Finds the scales of the block's tiles, unless one of all tiles is `known`, and
/// stores them; leaves each tile's factor in memory.factors, zero outside the matrix.
///
/// x: the thread's eight rows of eight elements. by_definition: whether the thread asks for the
/// definition already. Returns whether any thread or tile does. All threads of the block come here.
template <format_id From, format_id To, class Cast, shape Shape, class Care>
__device__ __forceinline__ bool find_factors(const patch_task& t, const place& at,
                                             const strip_of<From> (&x)[rows_a_thread],
                                             maxima_of<From, Shape> mine,
                                             block_memory<Shape>& memory, const tile_scale* known,
                                             bool by_definition = false) {
  auto& [maxima, factors] = memory;
  const unsigned tiles = static_cast<unsigned>(block_elements) >> (t.tile_rows + t.tile_cols);
  if constexpr (Shape != shape::rows) {
    for (unsigned i = threadIdx.x; i < tiles; i += block_threads) maxima[i] = 0;
  }
  const bool finite = !__syncthreads_or(mine.reaches_inf());
  if (!finite) mine = maxima_of<From, Shape>(x, t, at.row, at.col);
  join_maxima<From, Shape>(t, at, mine, maxima);
  __syncthreads();
  for (unsigned i = threadIdx.x; i < tiles; i += block_threads) {
    const std::uint64_t row = at.block_row + (i / at.tiles_across << t.tile_rows);
    const std::uint32_t col = at.block_col + (i % at.tiles_across << t.tile_cols);
    if (row >= t.rows || col >= t.cols) {
      factors[i] = {};  // what lies outside the matrix gets codes of zero
      continue;
    }
    const std::uint64_t tile_row = row >> t.tile_rows;
    const std::uint32_t tile_col = col >> t.tile_cols;
    const patch_scale s =
        scale_of_tile<From, To, Cast>(t, {maxima[i], !finite, finite}, tile_row, tile_col, known);
    factors[i] = Cast::factor_of(s.scale);
    by_definition |= s.special;
    Care::global(t.scales);
    Care::global(t.scales_transposed);
    store_scale(t, s.scale, tile_row, tile_col);
  }
  return __syncthreads_or(by_definition);
}

/// The encode stage. Rounds the thread's eight strips by Cast and stores each as it is done.
template <format_id From, class Cast, shape Shape, access Access>
__device__ __forceinline__ void encode_rows(const patch_task& t, const place& at,
                                            const strip_of<From> (&x)[rows_a_thread],
                                            const block_factors<Shape>& of_block,
                                            uint2 (&codes)[rows_a_thread]) {
  code_rows<Access> rows(t, at);
  if constexpr (Cast::field != 0) {
    using random = strip_words<Cast::field>;
    random drawn(t, t.index_of(at.row, at.col));
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
  } else {
#pragma unroll
    for (int i = 0; i < rows_a_thread; ++i) {
      codes[i] = Cast::template codes<From>(x[i], of_block.of_row(i));
      rows.store(codes[i]);
    }
  }
}

/// Quantizes block `block` of the task: 128 x 128 elements, or as many in fewer, longer rows. Load,
/// scale, encode and store; then store transposed where that is wanted. `known`: the scale of all
/// tiles, or null. All threads of the block come here.
template <format_id From, format_id To, class Cast, shape Shape, access Access,
          task_in Task = task_in::parameters>
__device__ __forceinline__ void quantize_block(const patch_task& t, unsigned block,
                                               block_memory<Shape>& memory,
                                               const tile_scale* known) {
  using care = care_of<From, Shape, Task>;
  extern __shared__ transposed_codes transposed[];  // one, or none
  const place at = place_of(t, block);
  strip_of<From> x[rows_a_thread];
  care::global(t.in);
  load_strips<From, Access>(t, at.row, at.col, at.count, x);
  const bool by_definition =
      find_factors<From, To, Cast, Shape, care>(t, at, x, maxima_of<From, Shape>(x), memory, known);

  const block_factors<Shape> of_block{memory.factors + at.tile,
                                      Shape == shape::rows ? at.tiles_across : 0};
  const kept_codes kept{t.codes_transposed == nullptr ? nullptr : &transposed[0].strip[0][0]};
  uint2 codes[rows_a_thread];
  if (!Cast::serves_all && by_definition) {
    if constexpr (care::calls) {
      call_store_defined<From, To, Shape>(t, block, memory.factors, kept.of_block);
    } else {
      store_defined<From, To, Shape>(t, at, of_block, kept);
    }
    kept.get(codes);
  } else if constexpr (!std::is_same_v<Cast, defined_cast>) {
    care::global(t.codes);
    encode_rows<From, Cast, Shape, Access>(t, at, x, of_block, codes);
  }
  if (t.codes_transposed != nullptr) {
    care::global(t.codes_transposed);
    store_transposed(t, transposed[0], codes, at.lane, at.line, at.block_row, at.block_col);
  }
}

/// A block by the definition from its first step on, as a call.
template <format_id From, format_id To, shape Shape>
__device__ __noinline__ void quantize_defined_block(const patch_task& t, unsigned block,
                                                    block_memory<Shape>& memory,
                                                    const tile_scale* known) {
  quantize_block<From, To, defined_cast, Shape, access::elements>(t, block, memory, known);
}

}  // namespace samebits::cuda
