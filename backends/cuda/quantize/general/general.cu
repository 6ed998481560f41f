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

/// Layout of the workspace: amaxes, scales, then partial statistics.
struct passes_memory {
  std::uint64_t tiles, chunks;  // chunks: 0 without statistics

  explicit passes_memory(const quantize_call& call)
      : tiles(static_cast<std::uint64_t>(call.grid.rows * call.grid.cols)), chunks(0) {
    if (call.outputs.statistics == nullptr) return;
    chunks = (size_of(call.in) + chunk_elements - 1) / chunk_elements;
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
    const matrix_work work(t);
    if (call.inverse_scales.data == nullptr) launch_amaxes(work, amaxes, stream);
    launch_scales<Arithmetic>(work, amaxes, scales, stream);
    if (call.outputs.statistics != nullptr) {
      launch_chunks<Arithmetic, true>(work, scales, parts, stream);
    } else {
      launch_chunks<Arithmetic, false>(work, scales, parts, stream);
    }
  }
  if (call.outputs.statistics != nullptr) {
    launch_total(parts, t.rows * t.cols, call.outputs.statistics, t.skip, stream);
  }
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
    const matrix_work work(t);
    if (t.tile_rows * t.tile_cols <= 32) return launch_tiles<Arithmetic, 1>(work, stream);
    launch_tiles<Arithmetic, 32>(work, stream);
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
  launch_scales<hardware>(matrix_work(task_of(call)), memory.amax, memory.scale, stream);
}

}  // namespace samebits::cuda
