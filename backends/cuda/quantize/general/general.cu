// Quantization of a matrix by the general kernels: workspace and launches.
#include "backends/cuda/quantize/general/general.hpp"

#include <cstdint>

#include "backends/cuda/common/error.hpp"
#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/quantize/general/general_kernels.cuh"
#include "backends/cuda/quantize/statistics.cuh"

namespace samebits::cuda {
namespace {

using backends::quantize_call;

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

/// Memory of a call in passes: of its tiles, then partial statistics, if they are wanted.
std::size_t passes_bytes(const quantize_call& call) {
  const quantize_task t = task_of(call);
  const std::uint64_t chunks = call.outputs.statistics == nullptr ? 0 : chunks_of(t);
  return tile_memory::bytes(tiles_of(t)) + statistics_bytes(chunks, chunks);
}

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
  clear_amaxes(&of_tensor->amax, 1, stream);
  if (call.tensor_scale.data == nullptr && t.rows * t.cols != 0) {
    quantize_task whole = t;
    whole.tile_rows = t.rows, whole.tile_cols = t.cols;
    whole.grid_rows = whole.grid_cols = 1;
    whole.inverse_scales = {};
    launch_amaxes(matrix_work(whole), &of_tensor->amax, stream);
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
  const matrix_work work(t);
  const tile_memory tiles(memory, work.tiles);
  const bool counted = call.outputs.statistics != nullptr;
  statistics_parts parts{};
  if (counted) {
    parts = parts_at(memory + tile_memory::bytes(work.tiles), work.chunks, work.chunks);
  }
  if (work.tiles != 0) {
    clear_amaxes(tiles.amaxes, work.tiles, stream);
    if (call.inverse_scales.data == nullptr) launch_amaxes(work, tiles.amaxes, stream);
    launch_scales<Arithmetic>(work, tiles.amaxes, tiles.scales, stream);
    const auto launch = counted ? launch_chunks<Arithmetic, true, matrix_work>
                                : launch_chunks<Arithmetic, false, matrix_work>;
    launch(work, tiles.scales, parts, stream);
  }
  if (counted) launch_total(parts, t.rows * t.cols, call.outputs.statistics, t.skip, stream);
}

}  // namespace

std::size_t general_workspace(const quantize_call& call) {
  return tensor_bytes(call) + (in_passes(call) ? passes_bytes(call) : 0);
}

template <class Arithmetic>
void launch_general(const quantize_call& call, std::byte* workspace, cudaStream_t stream) {
  const quantize_task t = prepared_task<Arithmetic>(call, workspace, stream);
  if (in_passes(call)) {
    launch_passes<Arithmetic>(call, t, workspace + tensor_bytes(call), stream);
  } else {
    const matrix_work work(t);
    if (t.tile_rows * t.tile_cols <= 32) return launch_tiles<Arithmetic, 1>(work, stream);
    launch_tiles<Arithmetic, 32>(work, stream);
  }
}
template void launch_general<numerics::by_definition>(const quantize_call&, std::byte*,
                                                      cudaStream_t);
template void launch_general<hardware>(const quantize_call&, std::byte*, cudaStream_t);

void clear_amaxes(tile_amax* amaxes, std::uint64_t count, cudaStream_t stream) {
  static_assert(numerics::no_amax == -1);  // every byte is FF
  check(cudaMemsetAsync(amaxes, 0xFF, count * sizeof *amaxes, stream), "quantize: memset");
}

void launch_one_scale(const quantize_call& call, const tile_memory& memory, cudaStream_t stream) {
  launch_scales<hardware>(matrix_work(task_of(call)), memory.amaxes, memory.scales, stream);
}

}  // namespace samebits::cuda
