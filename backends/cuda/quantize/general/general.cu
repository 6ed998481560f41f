// The general quantization kernels: any tile size, strides and outputs.
//
// Small tiles, no statistics: one pass, one warp per tile, or one thread per tile of at most 32
// elements. Large tiles or statistics: three kernels. Workspace: an amax and a scale per tile, and
// the partial statistics of each chunk.
//   amaxes_kernel   one warp per span of 4096 elements of a tile: atomic maximum into amaxes[tile]
//   scales_kernel   one thread per tile: scale from amax or from the caller's inverse scale
//   chunks_kernel   one block per chunk of 4096 elements of the matrix: round, then sum and count
#include "backends/cuda/quantize/general/general.hpp"

#include <cstdint>

#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/quantize/general/quantize_steps.cuh"
#include "backends/cuda/quantize/general/quantize_task.cuh"
#include "backends/cuda/quantize/statistics.cuh"

namespace samebits::cuda {
namespace {

using backends::quantize_call;

/// One warp, or one thread, quantizes one tile. The matrix is read from device memory once.
template <class Arithmetic, int Lanes>
__global__ void __launch_bounds__(block_threads) tiles_kernel(const quantize_task t) {
  if (t.skipped()) return;
  const std::uint64_t tiles = t.grid_rows * t.grid_cols;
  const std::uint64_t step = std::uint64_t{gridDim.x} * (block_threads / Lanes);
  for (std::uint64_t tile = (std::uint64_t{blockIdx.x} * block_threads + threadIdx.x) / Lanes;
       tile < tiles; tile += step) {
    quantize_tile<Arithmetic, Lanes>(t, tile, threadIdx.x % Lanes);
  }
}

/// Finds the amax of every tile. One warp per span of span_elements elements of a tile. amaxes[]
/// must start as no_amax.
__global__ void __launch_bounds__(block_threads)
    amaxes_kernel(const quantize_task t, const std::uint64_t spans, tile_amax* const amaxes) {
  if (t.skipped()) return;
  const std::uint64_t work = t.grid_rows * t.grid_cols * spans;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (block_threads / 32);
  for (std::uint64_t i = (std::uint64_t{blockIdx.x} * block_threads + threadIdx.x) / 32; i < work;
       i += warps) {
    const std::uint64_t tile = i / spans, begin = i % spans * span_elements;
    const tile_amax amax = amax_of_span(t, tile, begin, begin + span_elements, threadIdx.x % 32);
    if (threadIdx.x % 32 == 0) atomicMax(&amaxes[tile], amax);
  }
}

/// Computes and stores the scale of every tile. One thread per tile.
template <class Arithmetic>
__global__ void __launch_bounds__(block_threads)
    scales_kernel(const quantize_task t, const tile_amax* const amaxes,
                  numerics::tile_scale* const scales) {
  if (t.skipped()) return;
  const std::uint64_t tiles = t.grid_rows * t.grid_cols;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * block_threads + threadIdx.x; i < tiles;
       i += std::uint64_t{gridDim.x} * block_threads) {
    const std::uint64_t row = i / t.grid_cols, col = i % t.grid_cols;
    scales[i] = t.scale_of_tile<Arithmetic>(row, col, amaxes[i]);
    t.store_scale(row, col, scales[i].dequantization_scale);
  }
}

/// Computes the numbers of the tensor from its amax or from the given scale, and stores the scale. One
/// thread.
template <class Arithmetic>
__global__ void tensor_kernel(const quantize_task t, const tile_amax* const amax,
                              numerics::tensor_level* const tensor) {
  if (t.skipped()) return;
  const auto stored = t.tensor_scale.data != nullptr
                          ? static_cast<std::uint32_t>(load_code(t.tensor_scale.data, 4))
                          : numerics::tensor_scale_of<Arithmetic>(t.scale.rule, t.target, *amax);
  *tensor = numerics::tensor_level_of<Arithmetic>(t.scale.rule, t.target, stored);
  if (t.tensor_scale_out.data != nullptr) store_code(t.tensor_scale_out.data, 4, stored);
}

constexpr unsigned part_elements = 1024;  // elements whose partial sums shared memory holds at once

/// Rounds every element by the scale of its tile. One block per chunk of consecutive elements. If
/// parts.partial_sums is not null, also writes each chunk's partial sum and counts.
template <class Arithmetic>
__global__ void __launch_bounds__(block_threads)
    chunks_kernel(const quantize_task t, const numerics::tile_scale* const scales,
                  const statistics_parts parts) {
  if (t.skipped()) return;
  __shared__ quantize_sums inputs[part_elements];
  __shared__ quantize_sums of_parts[chunk_elements / part_elements];
  __shared__ quantize_counts of_threads[block_threads];
  if (parts.partial_sums != nullptr && blockIdx.x == 0 && threadIdx.x == 0) *parts.arrived = 0;
  const std::uint64_t elements = t.rows * t.cols;
  const std::uint64_t chunks = (elements + chunk_elements - 1) / chunk_elements;
  for (std::uint64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    quantize_counts counts;
    unsigned done_parts = 0;
    for (unsigned p = 0; p < chunk_elements / part_elements; ++p) {
      const std::uint64_t first = chunk * chunk_elements + p * part_elements;
      if (first >= elements) break;
      const auto n =
          static_cast<unsigned>(min(static_cast<std::uint64_t>(part_elements), elements - first));
      for (unsigned i = threadIdx.x; i < n; i += block_threads) {
        const std::uint64_t row = (first + i) / t.cols, col = (first + i) - row * t.cols;
        const numerics::tile_scale scale = scales[t.tile_of(row, col)];
        quantized_element e = quantized<Arithmetic>(t, scale, row, col);
        if (parts.partial_sums == nullptr) continue;
        e.restored = numerics::rescaled<Arithmetic>(
            t.target, e.restored, t.full_scale<Arithmetic>(scale.dequantization_scale));
        counts.add(e);
        inputs[i] = input_of(e.x, e.restored);
      }
      if (parts.partial_sums == nullptr) continue;
      combine_partial_sums<part_elements>(inputs, n);
      if (threadIdx.x == 0) of_parts[p] = inputs[0];
      __syncthreads();
      done_parts = p + 1;
    }
    if (parts.partial_sums == nullptr) continue;
    of_threads[threadIdx.x] = counts;
    for (unsigned half = block_threads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) of_threads[threadIdx.x].combine(of_threads[threadIdx.x + half]);
    }
    combine_partial_sums<chunk_elements / part_elements>(of_parts, done_parts);
    if (threadIdx.x == 0) {
      parts.partial_sums[chunk] = of_parts[0];
      parts.counts[chunk] = of_threads[0];
    }
    __syncthreads();
  }
}

/// Layout of the workspace: amaxes, scales, then partial statistics.
struct passes_memory {
  std::uint64_t tiles, chunks;  // chunks: 0 without statistics

  explicit passes_memory(const quantize_call& call)
      : tiles(static_cast<std::uint64_t>(call.grid.rows * call.grid.cols)), chunks(0) {
    if (call.outputs.statistics == nullptr) return;
    const auto elements = static_cast<std::uint64_t>(call.in.rows * call.in.cols);
    chunks = (elements + chunk_elements - 1) / chunk_elements;
  }
  [[nodiscard]] std::uint64_t whole_tiles() const { return (tiles + 3) / 4 * 4; }  // 16 bytes
  [[nodiscard]] std::size_t bytes() const {
    return whole_tiles() * (sizeof(tile_amax) + sizeof(numerics::tile_scale)) +
           statistics_bytes(chunks, chunks);
  }
};

/// Memory of a call whose rule has two levels, before all other memory: the amax and the numbers of the
/// tensor.
struct tensor_memory {
  alignas(16) tile_amax amax;
  numerics::tensor_level tensor;
};

std::size_t tensor_bytes(const quantize_call& call) {
  return has_two_levels(call.scale.rule) ? sizeof(tensor_memory) : 0;
}

/// The launch parameters of a call. For a rule with two levels, also enqueues the kernels that compute
/// the numbers of the tensor, which takes one tile as large as the matrix.
template <class Arithmetic>
quantize_task prepared_task(const quantize_call& call, std::byte* memory, cudaStream_t stream) {
  quantize_task t = task_of(call);
  if (!has_two_levels(call.scale.rule)) return t;
  auto* const of_tensor = reinterpret_cast<tensor_memory*>(memory);
  check(cudaMemsetAsync(&of_tensor->amax, 0xFF, sizeof of_tensor->amax, stream),
        "quantize: memset");  // every byte of no_amax
  const std::uint64_t elements = t.rows * t.cols;
  if (call.tensor_scale.data == nullptr && elements != 0) {
    quantize_task whole = t;
    whole.tile_rows = t.rows, whole.tile_cols = t.cols;
    whole.grid_rows = whole.grid_cols = 1;
    const std::uint64_t spans = (elements + span_elements - 1) / span_elements;
    launch_kernel("quantize", amaxes_kernel, grid_for(spans, block_threads / 32), block_threads, 0,
                  stream, whole, spans, &of_tensor->amax);
  }
  launch_kernel("quantize", tensor_kernel<Arithmetic>, 1, 1, 0, stream, t, &of_tensor->amax,
                &of_tensor->tensor);
  t.tensor = &of_tensor->tensor;
  return t;
}

/// Whether the call needs the three kernels and a workspace.
bool in_passes(const quantize_call& call) {
  return call.outputs.statistics != nullptr || has_large_tiles(call);
}

/// Large tiles or statistics: scales first, then rounding, then the total of the statistics.
template <class Arithmetic>
void launch_passes(const quantize_call& call, const quantize_task& t, std::byte* memory,
                   cudaStream_t stream) {
  const passes_memory size(call);
  auto* const amaxes = reinterpret_cast<tile_amax*>(memory);
  auto* const scales = reinterpret_cast<numerics::tile_scale*>(amaxes + size.whole_tiles());
  statistics_parts parts{};
  if (call.outputs.statistics != nullptr) {
    parts = parts_at(reinterpret_cast<std::byte*>(scales + size.whole_tiles()), size.chunks,
                     size.chunks);
  }
  if (size.tiles != 0) {
    constexpr int nothing = 0xFF;  // every byte of no_amax
    static_assert(numerics::no_amax == -1);
    check(cudaMemsetAsync(amaxes, nothing, size.tiles * sizeof(tile_amax), stream),
          "quantize: memset");
    const std::uint64_t of_tile = t.tile_rows * t.tile_cols;
    const std::uint64_t spans = (of_tile + span_elements - 1) / span_elements;
    if (call.inverse_scales.data == nullptr) {
      launch_kernel("quantize", amaxes_kernel, grid_for(size.tiles * spans, block_threads / 32),
                    block_threads, 0, stream, t, spans, amaxes);
    }
    launch_kernel("quantize", scales_kernel<Arithmetic>, grid_for(size.tiles, block_threads),
                  block_threads, 0, stream, t, amaxes, scales);
    const std::uint64_t elements = t.rows * t.cols;
    launch_kernel("quantize", chunks_kernel<Arithmetic>, grid_for(elements, chunk_elements),
                  block_threads, 0, stream, t, scales, parts);
  }
  if (call.outputs.statistics != nullptr) {
    launch_total(parts, t.rows * t.cols, call.outputs.statistics, t.skip, stream);
  }
}

/// Small tiles without statistics: one kernel.
template <class Arithmetic>
void launch_tiles(const quantize_task& t, cudaStream_t stream) {
  const std::uint64_t tiles = t.grid_rows * t.grid_cols;
  if (tiles == 0) return;
  const bool by_threads = t.tile_rows * t.tile_cols <= 32;
  launch_kernel("quantize", by_threads ? tiles_kernel<Arithmetic, 1> : tiles_kernel<Arithmetic, 32>,
                grid_for(tiles, block_threads / (by_threads ? 1 : 32)), block_threads, 0, stream,
                t);
}

}  // namespace

std::size_t general_workspace(const quantize_call& call) {
  return tensor_bytes(call) + (in_passes(call) ? passes_memory(call).bytes() : 0);
}

template <class Arithmetic>
void launch_general(const quantize_call& call, std::byte* workspace, cudaStream_t stream) {
  const quantize_task t = prepared_task<Arithmetic>(call, workspace, stream);
  if (in_passes(call)) {
    launch_passes<Arithmetic>(call, t, workspace + tensor_bytes(call), stream);
  } else {
    launch_tiles<Arithmetic>(t, stream);
  }
}
template void launch_general<numerics::by_definition>(const quantize_call&, std::byte*,
                                                      cudaStream_t);
template void launch_general<hardware>(const quantize_call&, std::byte*, cudaStream_t);

one_scale_memory one_scale_at(std::byte* workspace) {
  auto* const amax = reinterpret_cast<tile_amax*>(workspace);
  return {amax, reinterpret_cast<numerics::tile_scale*>(amax + 4)};  // 16 bytes
}

void launch_one_scale(const quantize_call& call, const one_scale_memory& memory,
                      cudaStream_t stream) {
  launch_kernel("quantize", scales_kernel<hardware>, 1, block_threads, 0, stream, task_of(call),
                memory.amax, memory.scale);
}

}  // namespace samebits::cuda
