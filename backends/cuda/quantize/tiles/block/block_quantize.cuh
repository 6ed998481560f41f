// Quantizes one block tile in one pass: load, find scales, encode and store.
//
// One block per block tile of 16384 elements: 128 x 128, or fewer and longer rows. Requires tiles
// of 1 x 16 to 1 x 256, 16 x 16 to 128 x 128 or 16 x 1 to 128 x 1. Shared memory: block_memory, and
// transposed_codes where transposed codes are wanted. Each element is read from memory once, except
// in block tiles that are rounded by the definition.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cuda/quantize/tiles/block/block_tile.cuh"
#include "backends/cuda/quantize/tiles/transposed.cuh"
#include "backends/cuda/quantize/tiles/vector_cast.cuh"

namespace samebits::cuda {

/// The codes of the thread's row i by the definition; zeros outside the matrix.
template <format_id From, format_id To, shape Shape>
__device__ __forceinline__ uint2 defined_codes(const tile_task& t, const block_coordinates& at,
                                               int i, const block_factors<Shape>& factors) {
  if (i >= at.count) return make_uint2(0, 0);
  return defined_vector<From, To>(t, factors.first + i * factors.step,
                                  Shape == shape::columns ? 1 : 0, at.row + i, at.col);
}

/// The codes of every thread in shared memory, where a loop can index them. of_block is null if no
/// codes are needed after they have been stored.
struct kept_codes {
  uint2* of_block;

  __device__ __forceinline__ void keep(int i, uint2 codes) const {
    if (of_block != nullptr) of_block[i * block_threads + threadIdx.x] = codes;
  }
  /// Reads the thread's codes back. All threads of the block must call. The memory may be reused
  /// after the call.
  __device__ __forceinline__ void get(uint2 (&codes)[rows_a_thread]) const {
    if (of_block == nullptr) return;
#pragma unroll
    for (int i = 0; i < rows_a_thread; ++i) codes[i] = of_block[i * block_threads + threadIdx.x];
    __syncthreads();
  }
};

/// Rounds and stores the thread's vectors by the definition.
template <format_id From, format_id To, shape Shape>
__device__ __forceinline__ void store_defined(const tile_task& t, const block_coordinates& at,
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

/// store_defined() as a function call. `factors`: the factors of all tiles of the block tile.
template <format_id From, format_id To, shape Shape>
__device__ __noinline__ void call_store_defined(const tile_task& t, unsigned block,
                                                const tile_factor* factors, uint2* kept) {
  const block_coordinates at = block_coordinates_of(t, block);
  const block_factors<Shape> of_block{factors + at.tile,
                                      Shape == shape::rows ? at.tiles_per_row : 0};
  store_defined<From, To, Shape>(t, at, of_block, kept_codes{kept});
}

/// Memory that holds a kernel's launch parameters. Parameters in shared memory take registers. They
/// also hide from the compiler that their pointers are to global memory: then each store of codes
/// might change the factors, and factors are read again.
enum class task_in { parameters, shared_memory };

/// How a kernel deals with launch parameters in shared memory.
///
/// - calls: the definition is a function call. 16-bit elements leave no registers: inlined code
///   spilled registers in block tiles that never need the definition.
/// - tells: the compiler is told that pointers are global. Telling costs some registers, and pays
///   where a thread has more than one factor (columns) or 128 registers (32-bit elements).
template <format_id From, shape Shape, task_in Task>
struct care_of {
  static constexpr bool shared = Task == task_in::shared_memory;
  static constexpr bool calls = shared && spec_of(From).storage_bits == 16;
  static constexpr bool tells = shared && (!calls || Shape == shape::columns);

  __device__ __forceinline__ static void global(const void* p) {
    if constexpr (tells) __builtin_assume(__isGlobal(p));
  }
};

/// Shared memory of a block: the maximum and the factor of each tile.
template <shape Shape>
struct block_memory {
  std::uint32_t maxima[max_tiles<Shape>];
  tile_factor factors[max_tiles<Shape>];
};

/// The scale stage. Finds and stores the scale of each tile of the block tile. Leaves the factor of
/// each tile in memory.factors; the factor is zero for tiles outside the matrix. All threads of the
/// block must call.
///
/// @param x the thread's eight rows of eight elements
/// @param known the scale that all tiles share, or null
/// @param by_definition whether this thread already asks for the definition
/// @returns whether any thread or tile asks for the definition, which then rounds the whole block
///   tile
template <format_id From, format_id To, class Cast, shape Shape, class Care>
__device__ __forceinline__ bool find_factors(const tile_task& t, const block_coordinates& at,
                                             const vector8<From> (&x)[rows_a_thread],
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
  combine_maxima<From, Shape>(t, at, mine, maxima);
  __syncthreads();
  for (unsigned i = threadIdx.x; i < tiles; i += block_threads) {
    const std::uint64_t row = at.block_row + (i / at.tiles_per_row << t.tile_rows);
    const std::uint32_t col = at.block_col + (i % at.tiles_per_row << t.tile_cols);
    if (row >= t.rows || col >= t.cols) {
      factors[i] = {};  // tiles outside the matrix get codes of zero
      continue;
    }
    const std::uint64_t tile_row = row >> t.tile_rows;
    const std::uint32_t tile_col = col >> t.tile_cols;
    const checked_scale s =
        scale_of_tile<From, To, Cast>(t, {maxima[i], !finite, finite}, tile_row, tile_col, known);
    factors[i] = Cast::factor_of(s.scale);
    by_definition |= s.special;
    Care::global(t.scales.data);
    Care::global(t.scales_transposed.data);
    store_scale(t, s.scale, tile_row, tile_col);
  }
  return __syncthreads_or(by_definition);
}

/// The encode stage. Rounds the thread's eight vectors by Cast. Each vector is stored at once.
template <format_id From, class Cast, shape Shape, access Access>
__device__ __forceinline__ void encode_rows(const tile_task& t, const block_coordinates& at,
                                            const vector8<From> (&x)[rows_a_thread],
                                            const block_factors<Shape>& of_block,
                                            uint2 (&codes)[rows_a_thread]) {
  code_rows<Access> rows(t, at);
  if constexpr (Cast::field != 0) {
    using random = vector_words<Cast::field>;
    random words_of(t, t.index_of(at.row, at.col));
#pragma unroll
    for (int i = 0; i < rows_a_thread; i += random::rows_at_once) {
      std::uint32_t words[random::rows_at_once][random::words];
      words_of.draw(words);
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

/// Quantizes block tile `block`: load, scale, encode and store; then store transposed where that is
/// wanted. `known`: the scale that all tiles share, or null. All threads of the block must call.
template <format_id From, format_id To, class Cast, shape Shape, access Access,
          task_in Task = task_in::parameters>
__device__ __forceinline__ void quantize_block(const tile_task& t, unsigned block,
                                               block_memory<Shape>& memory,
                                               const tile_scale* known) {
  using care = care_of<From, Shape, Task>;
  extern __shared__ transposed_codes transposed[];  // one or none
  const block_coordinates at = block_coordinates_of(t, block);
  vector8<From> x[rows_a_thread];
  care::global(t.in.data);
  load_vectors<From, Access>(t, at.row, at.col, at.count, x);
  const bool by_definition =
      find_factors<From, To, Cast, Shape, care>(t, at, x, maxima_of<From, Shape>(x), memory, known);

  const block_factors<Shape> of_block{memory.factors + at.tile,
                                      Shape == shape::rows ? at.tiles_per_row : 0};
  const kept_codes kept{t.codes_transposed.data == nullptr ? nullptr : &transposed[0].vector[0][0]};
  uint2 codes[rows_a_thread];
  if (!Cast::supports_all && by_definition) {
    if constexpr (care::calls) {
      call_store_defined<From, To, Shape>(t, block, memory.factors, kept.of_block);
    } else {
      store_defined<From, To, Shape>(t, at, of_block, kept);
    }
    kept.get(codes);
  } else if constexpr (!std::is_same_v<Cast, defined_cast>) {
    care::global(t.codes.data);
    encode_rows<From, Cast, Shape, Access>(t, at, x, of_block, codes);
  }
  if (t.codes_transposed.data != nullptr) {
    care::global(t.codes_transposed.data);
    store_transposed(t, transposed[0], codes, at.lane, at.line, at.block_row, at.block_col);
  }
}

/// Quantizes a block tile by the definition from the first step on. Not inlined.
template <format_id From, format_id To, shape Shape>
__device__ __noinline__ void quantize_defined_block(const tile_task& t, unsigned block,
                                                    block_memory<Shape>& memory,
                                                    const tile_scale* known) {
  quantize_block<From, To, defined_cast, Shape, access::elements>(t, block, memory, known);
}

}  // namespace samebits::cuda
