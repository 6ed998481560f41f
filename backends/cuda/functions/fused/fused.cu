// Fused elements on the CUDA backends: chooses the kernels of a call, and those in integers.
#include <cstddef>
#include <optional>

#include "backends/cuda/common/workspace.hpp"
#include "backends/cuda/functions/functions.hpp"
#include "backends/cuda/functions/fused/fused_kernel.cuh"
#include "backends/cuda/quantize/quantize.hpp"
#include "backends/cuda/quantize/route.hpp"
#include "backends/cuda/quantize/tiles/lane_tiles.cuh"
#include "backends/dispatch/visit.hpp"

namespace samebits::cuda {

void enqueue_fused(const backends::fused_call& call, arithmetic by, void* stream) {
  if (!by_units(by)) {
    return launch_fused<definition_rows, any_fused, 1>(call, static_cast<cudaStream_t>(stream));
  }
  backends::visit_quantized(call.plan.f.format,
                            [&]<format_id Format>() { launch_native_fused<Format>(call, stream); });
}

namespace {

constexpr const char* what = "fused operators: quantize";

/// Computes the elements or the norm into memory of the stream's pool, then quantizes them.
void enqueue_both(backends::fused_quantize_call call, arithmetic by, void* stream) {
  matrix_view& out = call.of_norm ? call.norm.out : call.elements.out[0];
  const auto bytes = static_cast<std::size_t>(out.rows * out.cols * storage_bytes(out.format));
  const workspace memory(nullptr, bytes, static_cast<cudaStream_t>(stream), what);
  out.data = memory.data();
  call.tiles.in = out;
  if (bytes > 0) {
    if (call.of_norm) {
      enqueue_rows(call.norm, by, stream);
    } else {
      enqueue_fused(call.elements, by, stream);
    }
  }
  enqueue_quantize(call.tiles, by, stream);
}

/// The parameters of tiles that the kernel of fused tiles supports.
std::optional<tile_task> fused_task(const backends::quantize_call& call) {
  const quantize_outputs& o = call.outputs;
  const bool supported = call.grid.tile_rows == 1 && call.grid.tile_cols == lane_tile &&
                         o.codes.data != nullptr && o.codes_transposed.data == nullptr &&
                         call.cast.rounding == rounding::nearest_even;
  if (!supported) return {};
  std::optional<tile_task> task = block_task(call);
  if (task && !task->aligned) task.reset();
  return task;
}

}  // namespace

void enqueue_fused_quantize(const backends::fused_quantize_call& call, arithmetic by,
                            void* stream) {
  const std::optional<tile_task> task = fused_task(call.tiles);
  const bool by_kernel = by_units(by) && task;
  if (by_kernel && call.of_norm && launch_norm_tiles(call, *task, stream)) return;
  if (!by_kernel || call.of_norm) return enqueue_both(call, by, stream);
  backends::visit_quantized(call.tiles.in.format, [&]<format_id Format>() {
    launch_native_tiles<Format>(call, *task, stream);
  });
}

}  // namespace samebits::cuda
