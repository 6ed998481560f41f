// The general quantization kernels: any tile size, strides and outputs, of one matrix or of a list.
//
// Small tiles, no statistics: one pass, one warp per tile, or one thread per tile of at most 32
// elements. Large tiles or statistics: three kernels. Workspace: an amax and a scale per tile, and
// the partial statistics of each chunk.
//   amaxes_kernel   one warp per span of 4096 elements of a tile: atomic maximum into amaxes[tile]
//   scales_kernel   one thread per tile: scale from amax or from the caller's inverse scale
//   chunks_kernel   one block per chunk of 4096 elements of a matrix: round, then sum and count
//
// `Work` is matrix_work or list_work: its tiles, spans of tiles and chunks of matrices, numbered
// through all tensors.
#pragma once

#include <cstdint>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/common/sum_tree.cuh"
#include "backends/cuda/quantize/general/quantize_steps.cuh"
#include "backends/cuda/quantize/statistics.cuh"

namespace samebits::cuda {

/// A tile, span or chunk of a tensor.
struct work_item {
  const quantize_task& task;
  std::uint64_t number;      ///< in its tensor
  std::uint64_t first_tile;  ///< number of the tensor's first tile
};

/// Spans of span_elements elements in one tile.
__host__ __device__ inline std::uint64_t spans_of_tile(const quantize_task& t) {
  return (t.tile_rows * t.tile_cols + span_elements - 1) / span_elements;
}
/// Tiles and chunks of a matrix.
inline std::uint64_t tiles_of(const quantize_task& t) { return t.grid_rows * t.grid_cols; }
inline std::uint64_t chunks_of(const quantize_task& t) {
  return (t.rows * t.cols + chunk_elements - 1) / chunk_elements;
}

/// One matrix.
struct matrix_work {
  static constexpr const char* what = "quantize";
  quantize_task task;
  std::uint64_t tiles, spans, chunks;

  explicit matrix_work(const quantize_task& t)
      : task(t), tiles(tiles_of(t)), spans(tiles * spans_of_tile(t)), chunks(chunks_of(t)) {}
  __device__ __forceinline__ bool skipped() const { return task.skipped(); }
  __device__ __forceinline__ work_item tile(std::uint64_t i) const { return {task, i, 0}; }
  __device__ __forceinline__ work_item span(std::uint64_t i) const { return {task, i, 0}; }
  __device__ __forceinline__ work_item chunk(std::uint64_t i) const { return {task, i, 0}; }
};

/// A list. tasks[] and the first numbers are in device memory, one per non-empty tensor. A binary
/// search finds the tensor of a number.
struct list_work {
  static constexpr const char* what = "quantize a list";
  const quantize_task* tasks;
  const std::uint64_t *first_tile, *first_span, *first_chunk;
  std::uint32_t tensors;
  std::uint64_t tiles, spans, chunks;

  __device__ __forceinline__ bool skipped() const { return tasks[0].skipped(); }
  __device__ work_item tile(std::uint64_t i) const { return item(first_tile, i); }
  __device__ work_item span(std::uint64_t i) const { return item(first_span, i); }
  __device__ work_item chunk(std::uint64_t i) const { return item(first_chunk, i); }

 private:
  /// The item of the last tensor whose first number is not above i.
  __device__ work_item item(const std::uint64_t* first, std::uint64_t i) const {
    std::uint32_t low = 0, high = tensors;
    while (high - low > 1) {
      const std::uint32_t middle = low + (high - low) / 2;
      (first[middle] <= i ? low : high) = middle;
    }
    return {tasks[low], i - first[low], first_tile[low]};
  }
};

/// Quantizes small tiles. The matrix is read from device memory once.
template <class Arithmetic, int Lanes, class Work>
__global__ void __launch_bounds__(block_threads) tiles_kernel(const Work work) {
  if (work.skipped()) return;
  const std::uint64_t step = std::uint64_t{gridDim.x} * (block_threads / Lanes);
  for (std::uint64_t i = (std::uint64_t{blockIdx.x} * block_threads + threadIdx.x) / Lanes;
       i < work.tiles; i += step) {
    const work_item tile = work.tile(i);
    quantize_tile<Arithmetic, Lanes>(tile.task, tile.number, threadIdx.x % Lanes);
  }
}

/// Finds the amax of every tile. amaxes[] must start as no_amax. Tensors with given scales are
/// skipped.
template <class Work>
__global__ void __launch_bounds__(block_threads)
    amaxes_kernel(const Work work, tile_amax* const amaxes) {
  if (work.skipped()) return;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (block_threads / 32);
  for (std::uint64_t i = (std::uint64_t{blockIdx.x} * block_threads + threadIdx.x) / 32;
       i < work.spans; i += warps) {
    const work_item span = work.span(i);
    const quantize_task& t = span.task;
    if (t.has_given_scales()) continue;
    const std::uint64_t spans = spans_of_tile(t);
    const std::uint64_t tile = span.number / spans, begin = span.number % spans * span_elements;
    const tile_amax amax = amax_of_span(t, tile, begin, begin + span_elements, threadIdx.x % 32);
    if (threadIdx.x % 32 == 0) atomicMax(&amaxes[span.first_tile + tile], amax);
  }
}

/// Computes and stores the scale of every tile.
template <class Arithmetic, class Work>
__global__ void __launch_bounds__(block_threads)
    scales_kernel(const Work work, const tile_amax* const amaxes,
                  numerics::tile_scale* const scales) {
  if (work.skipped()) return;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * block_threads + threadIdx.x; i < work.tiles;
       i += std::uint64_t{gridDim.x} * block_threads) {
    const work_item tile = work.tile(i);
    const quantize_task& t = tile.task;
    const std::uint64_t row = tile.number / t.grid_cols, col = tile.number % t.grid_cols;
    scales[i] = t.scale_of_tile<Arithmetic>(row, col, amaxes[i]);
    t.store_scale(row, col, scales[i].dequantization_scale);
  }
}

/// Combines the counts of all threads of a block, in thread 0.
__device__ inline quantize_counts counts_of_block(quantize_counts counts) {
  constexpr unsigned warps = block_threads / 32;
  __shared__ quantize_counts of_warp[warps];
  for (int apart = 1; apart < 32; apart <<= 1) counts.combine(of_lane(counts, apart));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = counts;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned warp = 1; warp < warps; ++warp) counts.combine(of_warp[warp]);
  }
  __syncthreads();  // before of_warp[] is written again
  return counts;
}

/// Rounds every element by the scale of its tile. Counted: also writes each chunk's partial sum and
/// counts to `parts`.
template <class Arithmetic, bool Counted, class Work>
__global__ void __launch_bounds__(block_threads)
    chunks_kernel(const Work work, const numerics::tile_scale* const scales,
                  const statistics_parts parts) {
  if (work.skipped()) return;
  if (Counted && blockIdx.x == 0 && threadIdx.x == 0) *parts.arrived = 0;
  for (std::uint64_t i = blockIdx.x; i < work.chunks; i += gridDim.x) {
    const work_item chunk = work.chunk(i);
    const quantize_task& t = chunk.task;
    const numerics::tile_scale* const of_tensor = scales + chunk.first_tile;
    const std::uint64_t first = chunk.number * chunk_elements;
    const std::uint64_t count = min(std::uint64_t{chunk_elements}, t.rows * t.cols - first);
    const auto element = [&](std::uint64_t at) {
      const std::uint64_t row = (first + at) / t.cols, col = (first + at) - row * t.cols;
      const numerics::tile_scale scale = of_tensor[t.tile_of(row, col)];
      quantized_element e = quantized<Arithmetic>(t, scale, row, col);
      if constexpr (Counted) {
        e.restored = numerics::rescaled<Arithmetic>(
            t.target, e.restored, t.full_scale<Arithmetic>(scale.dequantization_scale));
      }
      return e;
    };
    if constexpr (!Counted) {
      for (std::uint64_t at = threadIdx.x; at < count; at += block_threads) element(at);
    } else {
      using tree = block_tree<paired_sums, block_threads, 1>;
      __shared__ typename tree::scratch scratch;
      quantize_counts counts;
      const quantize_sums sums = tree::sum(count, scratch, [&](std::uint64_t at) {
        const quantized_element e = element(at);
        counts.add(e);
        return input_of(e.x, e.restored);
      });
      counts = counts_of_block(counts);
      if (threadIdx.x == 0) {
        parts.partial_sums[i] = sums;
        parts.counts[i] = counts;
      }
    }
  }
}

// Launches of these kernels.
template <class Arithmetic, int Lanes, class Work>
void launch_tiles(const Work& work, cudaStream_t stream) {
  if (work.tiles == 0) return;
  launch_kernel(Work::what, tiles_kernel<Arithmetic, Lanes, Work>,
                grid_for(work.tiles, block_threads / Lanes), block_threads, 0, stream, work);
}
template <class Work>
void launch_amaxes(const Work& work, tile_amax* amaxes, cudaStream_t stream) {
  launch_kernel(Work::what, amaxes_kernel<Work>, grid_for(work.spans, block_threads / 32),
                block_threads, 0, stream, work, amaxes);
}
template <class Arithmetic, class Work>
void launch_scales(const Work& work, const tile_amax* amaxes, numerics::tile_scale* scales,
                   cudaStream_t stream) {
  launch_kernel(Work::what, scales_kernel<Arithmetic, Work>, grid_for(work.tiles, block_threads),
                block_threads, 0, stream, work, amaxes, scales);
}
template <class Arithmetic, bool Counted, class Work>
void launch_chunks(const Work& work, const numerics::tile_scale* scales,
                   const statistics_parts& parts, cudaStream_t stream) {
  launch_kernel(Work::what, chunks_kernel<Arithmetic, Counted, Work>, grid_for(work.chunks, 1),
                block_threads, 0, stream, work, scales, parts);
}

}  // namespace samebits::cuda
