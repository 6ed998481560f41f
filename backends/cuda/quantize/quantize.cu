// Quantization on CUDA: any tiles, strides and outputs. A group of threads takes each tile; where
// tiles are large or statistics are wanted, one pass finds the scales and another rounds.
#include "backends/cuda/quantize/quantize.hpp"

#include <cstdint>

#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/common/workspace.hpp"
#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/quantize/quantize_steps.cuh"
#include "backends/cuda/quantize/quantize_task.cuh"
#include "backends/cuda/quantize/statistics.cuh"
#include "backends/self_test/self_test.hpp"
#include "numerics/bits/encode.hpp"

namespace samebits::cuda {
namespace {

using backends::quantize_call;

/// Tiles of few elements, a warp for each: the matrix is read from memory once.
template <class Arithmetic>
__global__ void __launch_bounds__(block_threads) tiles_kernel(const quantize_task t) {
  if (t.skipped()) return;
  const std::uint64_t tiles = t.grid_rows * t.grid_cols;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (block_threads / 32);
  for (std::uint64_t tile = (std::uint64_t{blockIdx.x} * block_threads + threadIdx.x) / 32;
       tile < tiles; tile += warps) {
    quantize_tile<Arithmetic>(t, tile, threadIdx.x % 32);
  }
}

/// The amaxes of all tiles, which start as nothing_counted, a warp for each piece of one.
__global__ void __launch_bounds__(block_threads)
    amaxes_kernel(const quantize_task t, const std::uint64_t pieces, tile_amax* const amaxes) {
  if (t.skipped()) return;
  const std::uint64_t work = t.grid_rows * t.grid_cols * pieces;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (block_threads / 32);
  for (std::uint64_t i = (std::uint64_t{blockIdx.x} * block_threads + threadIdx.x) / 32; i < work;
       i += warps) {
    const std::uint64_t tile = i / pieces, begin = i % pieces * piece_elements;
    const tile_amax amax = amax_of_piece(t, tile, begin, begin + piece_elements, threadIdx.x % 32);
    if (threadIdx.x % 32 == 0) atomicMax(&amaxes[tile], amax);
  }
}

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
    t.store_scale(row, col, scales[i].stored);
  }
}

constexpr unsigned part_elements = 1024;  // of a chunk, at once in shared memory

/// Rounds by scales that are known, a block for each chunk of elements in their order; counts if
/// there are parts to write.
template <class Arithmetic>
__global__ void __launch_bounds__(block_threads)
    chunks_kernel(const quantize_task t, const numerics::tile_scale* const scales,
                  const statistics_parts parts) {
  if (t.skipped()) return;
  __shared__ sum_node leaves[part_elements];
  __shared__ sum_node of_parts[chunk_elements / part_elements];
  __shared__ element_counts of_threads[block_threads];
  if (parts.nodes != nullptr && blockIdx.x == 0 && threadIdx.x == 0) *parts.arrived = 0;
  const std::uint64_t elements = t.rows * t.cols;
  const std::uint64_t chunks = (elements + chunk_elements - 1) / chunk_elements;
  for (std::uint64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    element_counts counts;
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
        if (parts.nodes == nullptr) continue;
        e.restored = numerics::rescaled<Arithmetic>(t.target, e.code, scale.stored);
        count(e, counts);
        leaves[i] = leaf_of(e.x, e.restored);
      }
      if (parts.nodes == nullptr) continue;
      join_nodes<part_elements>(leaves, n);
      if (threadIdx.x == 0) of_parts[p] = leaves[0];
      __syncthreads();
      done_parts = p + 1;
    }
    if (parts.nodes == nullptr) continue;
    of_threads[threadIdx.x] = counts;
    for (unsigned half = block_threads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) of_threads[threadIdx.x].join(of_threads[threadIdx.x + half]);
    }
    join_nodes<chunk_elements / part_elements>(of_parts, done_parts);
    if (threadIdx.x == 0) {
      parts.nodes[chunk] = of_parts[0];
      parts.counts[chunk] = of_threads[0];
    }
    __syncthreads();
  }
}

/// The workspace of the passes.
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

bool in_passes(const quantize_call& call) {
  return call.outputs.statistics != nullptr || has_large_tiles(call);
}

template <class Arithmetic>
void launch_passes(const quantize_call& call, std::byte* memory, cudaStream_t stream) {
  const quantize_task t = task_of(call);
  const passes_memory size(call);
  auto* const amaxes = reinterpret_cast<tile_amax*>(memory);
  auto* const scales = reinterpret_cast<numerics::tile_scale*>(amaxes + size.whole_tiles());
  statistics_parts parts{};
  if (call.outputs.statistics != nullptr) {
    parts = parts_at(reinterpret_cast<std::byte*>(scales + size.whole_tiles()), size.chunks,
                     size.chunks);
  }
  if (size.tiles != 0) {
    constexpr int nothing = 0xFF;  // of nothing_counted, every byte
    static_assert(numerics::nothing_counted == -1);
    check(cudaMemsetAsync(amaxes, nothing, size.tiles * sizeof(tile_amax), stream),
          "quantize: memset");
    const std::uint64_t of_tile = t.tile_rows * t.tile_cols;
    const std::uint64_t pieces = (of_tile + piece_elements - 1) / piece_elements;
    if (call.multipliers.data == nullptr) {
      launch_kernel("quantize", amaxes_kernel, grid_for(size.tiles * pieces, block_threads / 32),
                    block_threads, 0, stream, t, pieces, amaxes);
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

template <class Arithmetic>
void launch_tiles(const quantize_call& call, cudaStream_t stream) {
  const quantize_task t = task_of(call);
  if (t.rows == 0 || t.cols == 0) return;
  launch_kernel("quantize", tiles_kernel<Arithmetic>,
                grid_for(t.grid_rows * t.grid_cols, block_threads / 32), block_threads, 0, stream,
                t);
}

std::size_t workspace_of_passes(const quantize_call& call) {
  return in_passes(call) ? passes_memory(call).bytes() : 0;
}

template <class Arithmetic>
void launch_any(const quantize_call& call, cudaStream_t stream) {
  if (!in_passes(call)) return launch_tiles<Arithmetic>(call, stream);
  const workspace memory(call.workspace, workspace_of_passes(call), stream, "quantize: workspace");
  launch_passes<Arithmetic>(call, memory.data(), stream);
}

struct dequantize_task {
  cells codes, scales, out;
  format_spec source, target, scale;
  std::uint64_t rows, cols, tile_rows, tile_cols;
};

template <class Arithmetic>
__global__ void dequantize_kernel(const dequantize_task t) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < t.rows * t.cols;
       i += step) {
    const std::uint64_t row = i / t.cols, col = i - row * t.cols;
    const auto scale = static_cast<std::uint32_t>(
        load_code(t.scales.at(row / t.tile_rows, col / t.tile_cols), t.scale.storage_bits / 8));
    const auto s = numerics::decode<std::uint32_t>(t.scale, scale);
    const std::uint32_t y = numerics::rescaled<Arithmetic>(
        t.source, static_cast<std::uint32_t>(*t.codes.at(row, col)), s);
    store_code(t.out.at(row, col), t.target.storage_bits / 8,
               numerics::encode<std::uint32_t>(t.target, cast_rule{}, y, 0).code);
  }
}

template <class Arithmetic>
void launch_dequantize(const backends::dequantize_call& call, const executor& where) {
  const auto unsigned_of = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  const dequantize_task t{cells_of(call.codes),
                          cells_of(call.scales),
                          cells_of(call.out),
                          spec_of(call.codes.format),
                          spec_of(call.out.format),
                          spec_of(call.scales.format),
                          unsigned_of(call.codes.rows),
                          unsigned_of(call.codes.cols),
                          unsigned_of(call.grid.tile_rows),
                          unsigned_of(call.grid.tile_cols)};
  if (t.rows == 0 || t.cols == 0) return;
  const std::uint64_t blocks = (t.rows * t.cols + block_threads - 1) / block_threads;
  const auto grid = static_cast<unsigned>(std::min<std::uint64_t>(blocks, 1u << 20));
  launch_kernel("dequantize", dequantize_kernel<Arithmetic>, grid, block_threads, 0,
                static_cast<cudaStream_t>(where.stream), t);
}

bool has_everything(const quantize_call&) { return true; }

void quantize_emulated(const quantize_call& call, const executor& where) {
  backends::require_tested(emulated, where.stream);
  enqueue_quantize_emulated(call, where.stream);
}

void dequantize_emulated(const backends::dequantize_call& call, const executor& where) {
  backends::require_tested(emulated, where.stream);
  launch_dequantize<numerics::binary32::integers>(call, where);
}

/// One scale for the matrix: two passes, or one where it is given.
bool try_launch_whole_tensor(const quantize_call& call, cudaStream_t stream) {
  if (!has_whole_tensor(call)) return false;
  const workspace memory(call.workspace, passes_memory(call).bytes(), stream,
                         "quantize: workspace");
  auto* const amax = reinterpret_cast<tile_amax*>(memory.data());
  auto* const scale =
      reinterpret_cast<numerics::tile_scale*>(amax + passes_memory(call).whole_tiles());
  check(cudaMemsetAsync(amax, 0xFF, sizeof(tile_amax), stream), "quantize: memset");
  if (call.multipliers.data == nullptr) launch_whole_amax(call, amax, stream);
  launch_kernel("quantize", scales_kernel<hardware>, 1, block_threads, 0, stream, task_of(call),
                amax, scale);
  launch_whole_tensor(call, scale, stream);
  return true;
}

void quantize_native(const quantize_call& call, const executor& where) {
  backends::require_tested(native, where.stream);
  enqueue_quantize_native(call, where.stream);
}

std::size_t workspace_native(const quantize_call& call) {
  if (has_patches(call)) return 0;
  if (has_whole_tensor(call)) return passes_memory(call).bytes();
  return has_counted_patches(call) ? counted_workspace(call) : workspace_of_passes(call);
}

void dequantize_native(const backends::dequantize_call& call, const executor& where) {
  backends::require_tested(native, where.stream);
  launch_dequantize<hardware>(call, where);
}

}  // namespace

void enqueue_quantize_emulated(const quantize_call& call, void* stream) {
  launch_any<numerics::binary32::integers>(call, static_cast<cudaStream_t>(stream));
}

void enqueue_quantize_native(const quantize_call& call, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (has_counted_patches(call)) {
    const workspace memory(call.workspace, counted_workspace(call), on, "quantize: workspace");
    launch_counted_patches(call, memory.data(), on);
  } else if (!try_launch_patches(call, on) && !try_launch_whole_tensor(call, on)) {
    launch_any<hardware>(call, on);
  }
}

const backends::quantizer emulated_quantizer = {
    .has = has_everything,
    .quantize = quantize_emulated,
    .workspace = workspace_of_passes,
    .dequantize = dequantize_emulated,
    .prepare = prepare_list,
    .quantize_list = quantize_list_emulated,
};
const backends::quantizer native_quantizer = {
    .has = has_everything,
    .quantize = quantize_native,
    .workspace = workspace_native,
    .dequantize = dequantize_native,
    .prepare = prepare_list,
    .quantize_list = quantize_list_native,
};

}  // namespace samebits::cuda
