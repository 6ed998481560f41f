// Quantization on the CUDA backends: runs the kernels that route_of() selects.
#include <cstddef>

#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/workspace.hpp"
#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/quantize/general/general.hpp"
#include "backends/cuda/quantize/quantize.hpp"
#include "backends/cuda/quantize/route.hpp"
#include "backends/cuda/quantize/tiles/tile_launches.cuh"
#include "backends/dispatch/visit.hpp"
#include "backends/self_test/self_test.hpp"

namespace samebits::cuda {
namespace {

using backends::quantize_call;

/// Quantizes with one scale per matrix: an amax pass and a rounding pass. The amax pass is skipped
/// if the caller gives the scale.
void launch_by_one_scale(const quantize_call& call, const tile_task& task, std::byte* workspace,
                         cudaStream_t stream) {
  const tile_memory memory(workspace, 1);
  clear_amaxes(memory.amaxes, 1, stream);
  if (call.inverse_scales.data == nullptr) {
    launch_tensor_amax(task, call.in.format, memory.amaxes, stream);
  }
  launch_one_scale(call, memory, stream);
  launch_block_tiles(task, call.in.format, call.to, stream, memory.scales);
}

void launch_with_statistics(const quantize_call& call, const quantize_route& route,
                            std::byte* workspace, cudaStream_t stream) {
  const statistics_parts parts = parts_of(route, workspace);
  launch_statistics_tiles(route.task, call.in.format, call.to, parts, stream);
  launch_total(parts, route.task.rows * route.task.cols, call.outputs.statistics,
               call.skip_if_nonzero, stream);
}

}  // namespace

void launch_block_tiles(const tile_task& t, format_id from, format_id to, cudaStream_t stream,
                        const tile_scale* known) {
  backends::visit_quantized(
      from, [&]<format_id From>() { launch_block_tiles_from<From>(t, to, stream, known); });
}

void enqueue_quantize(const quantize_call& call, arithmetic by, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const bool native = by == arithmetic::hardware;
  const quantize_route route =
      native ? route_of(call)
             : quantize_route{quantize_kernel::general, {}, general_workspace(call)};
  const workspace memory(call.workspace, route.workspace, on, "quantize: workspace");
  switch (route.kernel) {
    case quantize_kernel::blocks:
      return launch_block_tiles(route.task, call.in.format, call.to, on);
    case quantize_kernel::rows: return launch_row_tiles(route.task, call.in.format, call.to, on);
    case quantize_kernel::one_scale:
      return launch_by_one_scale(call, route.task, memory.data(), on);
    case quantize_kernel::statistics: return launch_with_statistics(call, route, memory.data(), on);
    case quantize_kernel::general:
      with_arithmetic(
          by, [&](auto policy) { launch_general<decltype(policy)>(call, memory.data(), on); });
  }
}

std::size_t workspace_native(const quantize_call& call) { return route_of(call).workspace; }

}  // namespace samebits::cuda
