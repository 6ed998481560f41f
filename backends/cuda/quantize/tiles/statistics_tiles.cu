// Quantizes a matrix with statistics in one pass. One block per block tile of 16384 elements.
//
// A block quantizes its block tile as without statistics. While the elements are in registers, the
// block dequantizes each code, sums x^2 and (x - x')^2, and counts. Block tiles with elements that
// are not finite, or in the top binade, are rounded by the definition. Shared memory: vector_sums,
// block_counts and block_memory. Cost: bound by instructions; bf16 to e4m3 takes 64 to 71 % of the
// bandwidth of a device-to-device copy of the same bytes on an H200 (docs/benchmarks.md).
#include <cstdint>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/instructions/warp.cuh"
#include "backends/cuda/quantize/tiles/block/block_quantize.cuh"
#include "backends/cuda/quantize/tiles/tile_launches.cuh"
#include "backends/cuda/quantize/tiles/vector_statistics.cuh"
#include "backends/cuda/quantize/tuning.hpp"
#include "backends/dispatch/visit.hpp"

namespace samebits::cuda {
namespace {

/// t.log2_lanes; a constant where tiles have several rows.
template <shape Shape>
__device__ __forceinline__ int log2_lanes_of_row(const tile_task& t) {
  return Shape == shape::rows ? t.log2_lanes : 4;
}

/// Partial sums of the vectors of a block tile in shared memory, 2^log2_lanes vectors per row.
/// Vector n is in row n / 2^log2_lanes of the block tile.
///
/// Writers: each thread has the vectors of 8 rows in one lane column. Readers: each thread sums 8
/// neighbouring vectors of one row. Vector n lies in slot n ^ (n / 8 % 8): the threads of a warp,
/// which read every eighth vector, have no bank conflicts.
struct vector_sums {
  quantize_sums of_vector[block_threads * rows_a_thread];

  /// The slots of the thread's rows, one row after the other.
  class rows {
   public:
    __device__ __forceinline__ rows(const block_coordinates& at, int log2_lanes)
        : vector_(((at.line * rows_a_thread) << log2_lanes) + at.lane), step_(1u << log2_lanes) {}
    __device__ __forceinline__ void store(vector_sums& sums, const quantize_sums& of_row) {
      sums.of_vector[slot(vector_)] = of_row;
      vector_ += step_;
    }

   private:
    unsigned vector_, step_;
  };

  /// The sum of vectors 8 * threadIdx.x to 8 * threadIdx.x + 7.
  [[nodiscard]] __device__ __forceinline__ quantize_sums of_eight() const {
    static_assert(rows_a_thread == 8);
    quantize_sums sums[8];
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) sums[k] = of_vector[slot(threadIdx.x * 8 + k)];
    combine_neighbours<paired_sums, 8>(sums);
    return sums[0];
  }

 private:
  __device__ __forceinline__ static unsigned slot(unsigned n) { return n ^ (n / 8 & 7u); }
};

/// Sums each row of the block tile and stores the row's partial sum. All threads of the block must
/// call.
template <shape Shape>
__device__ __forceinline__ void store_row_sums(const tile_task& t, const block_coordinates& at,
                                               unsigned col_block, const vector_sums& sums,
                                               const statistics_parts& parts) {
  const int log2_threads = log2_lanes_of_row<Shape>(t) - 3;  // threads that share a row
  const quantize_sums of_row = combined_lanes(sums.of_eight(), 1 << log2_threads);
  const std::uint64_t row = at.block_row + (threadIdx.x >> log2_threads);
  if ((threadIdx.x & ((1u << log2_threads) - 1)) == 0 && row < t.rows) {
    parts.partial_sums[row * t.col_blocks + col_block] = of_row;
  }
}

/// Counts of a block in shared memory. Each warp adds its counts.
struct block_counts {
  std::uint32_t zeros, nan, inf, underflowed, saturated, amax, min_nonzero;

  /// Called by one thread, before any warp adds.
  __device__ __forceinline__ void clear() { *this = {0, 0, 0, 0, 0, 0, quantize_counts::none}; }
  /// Adds the counts of a warp's threads, and their maximum magnitude `maximum`, a code. All lanes
  /// must call.
  template <format_id From>
  __device__ __forceinline__ void add(const finite_counts<From>& c, std::uint32_t maximum) {
    if (__any_sync(all_lanes, c.zero_codes != 0)) {
      add(zeros, c.zeros);
      add(underflowed, c.zero_codes - c.zeros);
    }
    raise(numerics::decode<std::uint32_t>(spec_of(From), maximum), c.min_nonzero());
  }
  __device__ __forceinline__ void add(const quantize_counts& c) {
    add(zeros, static_cast<std::uint32_t>(c.zeros));
    add(nan, static_cast<std::uint32_t>(c.nan));
    add(inf, static_cast<std::uint32_t>(c.inf));
    add(underflowed, static_cast<std::uint32_t>(c.underflowed));
    add(saturated, static_cast<std::uint32_t>(c.saturated));
    raise(c.amax, c.min_nonzero);
  }
  [[nodiscard]] __device__ __forceinline__ quantize_counts counts() const {
    return {zeros, nan, inf, underflowed, saturated, amax, min_nonzero};
  }

 private:
  __device__ __forceinline__ static void add(std::uint32_t& to, std::uint32_t own) {
    const std::uint32_t all = __reduce_add_sync(all_lanes, own);
    if (threadIdx.x % 32 == 0 && all != 0) atomicAdd(&to, all);
  }
  __device__ __forceinline__ void raise(std::uint32_t maximum, std::uint32_t minimum) {
    maximum = __reduce_max_sync(all_lanes, maximum);
    minimum = __reduce_min_sync(all_lanes, minimum);
    if (threadIdx.x % 32 != 0) return;
    atomicMax(&amax, maximum);
    atomicMin(&min_nonzero, minimum);
  }
};

/// The encode stage with statistics. Stores the codes of the thread's vectors, writes their partial
/// sums to `sums` and counts the elements. `maximum`: the thread's maximum magnitude, as a code.
template <format_id From, format_id To, shape Shape>
__device__ __forceinline__ void encode_and_count(const tile_task& t, const block_coordinates& at,
                                                 const vector8<From> (&x)[rows_a_thread],
                                                 const block_factors<Shape>& factors,
                                                 std::uint32_t maximum, vector_sums& sums,
                                                 block_counts& of_block) {
  finite_counts<From> counts;
  code_rows<access::vectors> rows(t, at);
  vector_sums::rows sum_rows(at, log2_lanes_of_row<Shape>(t));
  tile_factor factor = factors.of_row(0).factor;
#pragma unroll
  for (int i = 0; i < rows_a_thread; i += 2) {  // one test for zeros covers two rows
    uint2 codes[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      if (Shape == shape::rows) factor = factors.of_row(i + k).factor;
      const coded_vector of_row = coded<From, To>(x[i + k], factor);
      codes[k] = of_row.codes;
      rows.store(of_row.codes);
      sum_rows.store(sums, of_row.sums);
    }
    if (all_nonzero(codes[0], codes[1])) {
      counts.add_nonzero(x[i]);
      counts.add_nonzero(x[i + 1]);
    } else {
      if (i < at.count) counts.add(x[i], codes[0]);
      if (i + 1 < at.count) counts.add(x[i + 1], codes[1]);
    }
  }
  of_block.add(counts, maximum);
}

/// encode_and_count() by the definition. Reads the elements again. Not inlined.
template <format_id From, format_id To, shape Shape>
__device__ __noinline__ void define_and_count(const tile_task& t, unsigned block,
                                              const tile_factor* factors, vector_sums& sums,
                                              block_counts& of_block) {
  const block_coordinates at = block_coordinates_of(t, block);
  const unsigned step = Shape == shape::rows ? at.tiles_per_row : 0;
  quantize_counts counts;
  code_rows<access::vectors> rows(t, at);
  vector_sums::rows sum_rows(at, log2_lanes_of_row<Shape>(t));
#pragma unroll 1
  for (int i = 0; i < rows_a_thread; ++i) {
    coded_vector vector_i{};
    if (i < at.count) {
      vector_i = defined_vector_with_statistics<From, To>(t, factors[at.tile + i * step],
                                                          at.row + i, at.col, counts);
    }
    rows.store(vector_i.codes);
    sum_rows.store(sums, vector_i.sums);
  }
  of_block.add(counts);
}

/// Quantizes block tile blockIdx.x, and writes its partial sums and counts to `parts`.
template <format_id From, format_id To, shape Shape>
__global__ void __launch_bounds__(block_threads, resident_blocks_with_statistics<From>)
    statistics_tiles_kernel(const __grid_constant__ tile_task t, const statistics_parts parts) {
#if __CUDA_ARCH__ >= 890
  if (t.skip != nullptr && *t.skip != 0) return;
  if (blockIdx.x == 0 && threadIdx.x == 0) *parts.arrived = 0;
  __shared__ vector_sums sums;
  __shared__ block_counts counts;
  if (threadIdx.x == 0) counts.clear();  // find_factors() has barriers before any use
  __shared__ block_memory<Shape> memory;
  const block_coordinates at = block_coordinates_of(t, blockIdx.x);
  vector8<From> x[rows_a_thread];
  load_vectors<From, access::vectors>(t, at.row, at.col, at.count, x);
  const row_maxima<From, rows_a_thread> maxima(x);
  const std::uint32_t maximum = maxima.of_all();
  using care = care_of<From, Shape, task_in::parameters>;
  const bool by_definition = find_factors<From, To, statistics_cast<To>, Shape, care>(
      t, at, x, maxima, memory, nullptr, maximum >= top_binade<From>);
  const block_factors<Shape> factors{memory.factors + at.tile,
                                     Shape == shape::rows ? at.tiles_per_row : 0};
  if (by_definition) {
    define_and_count<From, To, Shape>(t, blockIdx.x, memory.factors, sums, counts);
  } else {
    encode_and_count<From, To, Shape>(t, at, x, factors, maximum, sums, counts);
  }
  __syncthreads();
  store_row_sums<Shape>(t, at, blockIdx.x % t.col_blocks, sums, parts);
  if (threadIdx.x == 0) parts.counts[blockIdx.x] = counts.counts();
#endif
}

}  // namespace

void launch_statistics_tiles(const tile_task& t, format_id from, format_id to,
                             const statistics_parts& parts, cudaStream_t stream) {
  backends::visit_quantization<false>(from, to, [&]<format_id From, format_id To>() {
    const auto kernel = t.tile_rows == 0 ? statistics_tiles_kernel<From, To, shape::rows>
                                         : statistics_tiles_kernel<From, To, shape::square_tiles>;
    launch_kernel("cuda-native: quantize", kernel, static_cast<unsigned>(block_count(t)),
                  block_threads, 0, stream, t, parts);
  });
}

}  // namespace samebits::cuda
