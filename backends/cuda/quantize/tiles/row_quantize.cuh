// Quantizes rows that have one scale each. A group of 4 to 256 threads per row.
//
// A group holds up to 16384 elements of a row in registers between finding the scale and rounding.
// A longer row goes through the registers in spans. All but the last span are read a second time
// for rounding, then from the caches. Rows that are not aligned (tile_task::aligned) are read
// element by element and rounded by the definition. Shared memory: one maximum per warp.
#pragma once

#include <cstdint>

#include "backends/cuda/instructions/warp.cuh"
#include "backends/cuda/quantize/tiles/tile_codes.cuh"
#include "backends/cuda/quantize/tiles/vector_cast.cuh"

namespace samebits::cuda {

/// Shared memory of a block: the maximum of each warp.
struct row_memory {
  std::uint32_t maxima[block_threads / 32];
};

/// The coordinates of a thread: `lane` of the 2^log2_lanes threads that share row `row`. inside:
/// the row lies in the matrix.
struct row_coordinates {
  unsigned lane;
  int log2_lanes;
  std::uint64_t row;
  bool inside;

  __device__ __forceinline__ row_coordinates(const tile_task& t, unsigned block)
      : lane(threadIdx.x & ((1u << t.log2_lanes) - 1)),
        log2_lanes(t.log2_lanes),
        row(std::uint64_t{block} * (block_threads >> t.log2_lanes) + (threadIdx.x >> t.log2_lanes)),
        inside(row < t.rows) {}
  /// Columns of a span: the elements of a row that its threads hold at once.
  [[nodiscard]] __device__ __forceinline__ std::uint32_t part() const {
    return static_cast<std::uint32_t>(vectors_per_thread * vector_length) << log2_lanes;
  }
  /// The first column of the thread's vector i in the span that begins at column `first`.
  [[nodiscard]] __device__ __forceinline__ std::uint32_t col(std::uint32_t first, int i) const {
    return first + ((static_cast<std::uint32_t>(i) << log2_lanes) + lane) * vector_length;
  }
};

/// Loads the thread's vectors of a span; zeros beyond the end of the row. Requires
/// tile_task::aligned.
template <format_id From>
__device__ __forceinline__ void load_part(const tile_task& t, const row_coordinates& at,
                                          std::uint32_t first,
                                          vector8<From> (&x)[vectors_per_thread]) {
  constexpr int bytes = spec_of(From).storage_bits / 8;
  const std::byte* const row = t.in.at(at.row, 0);
#pragma unroll
  for (int i = 0; i < vectors_per_thread; ++i) {
    x[i] = {};
    const std::uint32_t col = at.col(first, i);
    if (at.inside && col < t.cols) x[i] = vector8<From>::load(row + std::uint64_t{col} * bytes);
  }
}

/// The maximum magnitude of the thread's elements, as a code; Inf or above if any element is NaN or
/// Inf.
template <format_id From>
__device__ __forceinline__ std::uint32_t largest_code(
    const vector8<From> (&x)[vectors_per_thread]) {
  constexpr bool paired = spec_of(From).storage_bits == 16;
  std::uint32_t maximum = 0;
#pragma unroll
  for (const vector8<From>& s : x) {
#pragma unroll
    for (const std::uint32_t word : s.w) {
      if constexpr (paired) {
        maximum = larger_magnitudes<From>(maximum, word);
      } else {
        maximum = max(maximum, word & 0x7FFFFFFFu);
      }
    }
  }
  return paired ? max(maximum >> 16 & 0x7FFFu, maximum & 0x7FFFu) : maximum;
}

/// The maximum amax_code() of every 2^log2_lanes-th element of the row. Supports any alignment.
template <format_id From>
__device__ __forceinline__ std::uint32_t largest_amax_code(const tile_task& t,
                                                           const row_coordinates& at) {
  constexpr std::uint32_t magnitude = (1u << (spec_of(From).storage_bits - 1)) - 1;
  std::uint32_t maximum = 0;
  if (!at.inside) return maximum;
#pragma unroll 1
  for (std::uint32_t col = at.lane; col < t.cols; col += 1u << at.log2_lanes) {
    const std::uint32_t code = load_element<From>(t, at.row, col) & magnitude;
    maximum = max(maximum, amax_code<From>(t, code, at.row, col));
  }
  return maximum;
}

/// The maximum of `mine` over the threads of a row. All threads of the block must call. Before a
/// second call, all threads must have passed a barrier since the first.
__device__ __forceinline__ std::uint32_t of_row(const row_coordinates& at, std::uint32_t mine,
                                                row_memory& memory) {
  if (at.log2_lanes < 5) {
    for (int apart = 1 << at.log2_lanes >> 1; apart > 0; apart >>= 1) {
      mine = max(mine, __shfl_xor_sync(all_lanes, mine, apart));
    }
    return mine;
  }
  mine = __reduce_max_sync(all_lanes, mine);
  if (at.log2_lanes == 5) return mine;
  const unsigned warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) memory.maxima[warp] = mine;
  __syncthreads();
  const unsigned warps = 1u << (at.log2_lanes - 5), first = warp & ~(warps - 1);
  for (unsigned i = 0; i < warps; ++i) mine = max(mine, memory.maxima[first + i]);
  return mine;
}

/// Rounds and stores the row's elements by the definition.
template <format_id From, format_id To>
__device__ __forceinline__ void store_defined_row(const tile_task& t, const row_coordinates& at,
                                                  tile_factor factor) {
  std::byte* const to = t.codes.at(at.row, 0);
#pragma unroll 1
  for (std::uint32_t col = at.lane * vector_length; col < t.cols;
       col += static_cast<unsigned>(vector_length) << at.log2_lanes) {
    const uint2 codes = defined_vector<From, To>(t, &factor, 0, at.row, col);
    store_codes<access::elements>(to + col, t.cols - col, codes);
  }
}

/// Rounds and stores the thread's vectors of a span.
template <format_id From, class Cast>
__device__ __forceinline__ void store_part(const tile_task& t, const row_coordinates& at,
                                           std::uint32_t first, const tile_factor& factor,
                                           const vector8<From> (&x)[vectors_per_thread]) {
  std::byte* const to = t.codes.at(at.row, 0);
#pragma unroll
  for (int i = 0; i < vectors_per_thread; ++i) {
    const std::uint32_t col = at.col(first, i);
    if (col >= t.cols) break;
    store_codes<access::vectors>(to + col, vector_length,
                                 Cast::template codes<From>(x[i], one_factor{factor}));
  }
}

/// Quantizes the rows of block `block`. All threads of the block must call.
template <format_id From, format_id To, class Cast>
__device__ __forceinline__ void quantize_rows(const tile_task& t, unsigned block,
                                              row_memory& memory) {
  const row_coordinates at(t, block);
  vector8<From> x[vectors_per_thread];
  std::uint32_t held = 0;  // first column of the span in x
  std::uint32_t mine = t.aligned ? 0 : inf_magnitude<From>;
  while (t.aligned) {
    load_part<From>(t, at, held, x);
    mine = max(mine, largest_code<From>(x));
    if (held + at.part() >= t.cols) break;
    held += at.part();
  }
  std::uint32_t maximum = of_row(at, mine, memory);
  const bool finite = maximum < inf_magnitude<From>;
  if (__syncthreads_or(!finite)) {
    const std::uint32_t contribution =
        of_row(at, finite ? 0 : largest_amax_code<From>(t, at), memory);
    if (!finite) maximum = contribution;
  }
  if (!at.inside) return;
  const checked_scale s = scale_of_tile<From, To, Cast>(t, {maximum, !finite, finite}, at.row, 0);
  if (at.lane == 0) store_scale(t, s.scale, at.row, 0);
  const tile_factor factor = Cast::factor_of(s.scale);
  if (s.special || t.by_definition) return store_defined_row<From, To>(t, at, factor);
  store_part<From, Cast>(t, at, held, factor, x);
  for (std::uint32_t first = 0; first < held; first += at.part()) {
    load_part<From>(t, at, first, x);
    store_part<From, Cast>(t, at, first, factor, x);
  }
}

}  // namespace samebits::cuda
