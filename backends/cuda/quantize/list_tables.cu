// Selects the cuda-native kernel for a list of tensors, builds the kernel's tables on the host, and
// launches it.
#include <cstdint>
#include <optional>
#include <span>

#include "backends/cuda/quantize/route.hpp"
#include "backends/cuda/quantize/tiles/list/list_tiles.cuh"
#include "backends/cuda/quantize/tiles/tile_launches.cuh"
#include "backends/dispatch/visit.hpp"
#include "samebits/error.hpp"

namespace samebits::cuda {
namespace {

using backends::quantize_call;

/// Whether two calls have tiles of the same kind: 1 x G, G x 1 or square. Tiles that span the whole
/// extent may be of any kind.
bool are_tiled_alike(const quantize_call& a, const quantize_call& b) {
  return one_row_tiles(a) == one_row_tiles(b) &&
         (one_row_tiles(a) || (a.grid.tile_cols == 1) == (b.grid.tile_cols == 1));
}

std::optional<tile_task> task_of(const quantize_call& call, list_kernel kernel) {
  switch (kernel) {
    case list_kernel::blocks: return block_task(call);
    case list_kernel::rows: return row_task(call);
    case list_kernel::tensors: return one_scale_task(call);
    case list_kernel::none: break;
  }
  return {};
}

/// Whether one launch of the kernel supports every non-empty tensor of the list.
bool supports_all(list_kernel kernel, std::span<const quantize_call> calls) {
  const quantize_call* first = nullptr;
  for (const quantize_call& call : calls) {
    if (is_empty(call)) continue;
    if (first == nullptr) first = &call;
    if (!task_of(call, kernel)) return false;
    if (kernel == list_kernel::blocks && !are_tiled_alike(call, *first)) return false;
  }
  return first != nullptr;
}

}  // namespace

list_kernel list_kernel_of(std::span<const quantize_call> calls) {
  for (const list_kernel kernel : {list_kernel::blocks, list_kernel::rows, list_kernel::tensors}) {
    if (supports_all(kernel, calls)) return kernel;
  }
  return list_kernel::none;
}

list_tables list_tables_of(std::span<const quantize_call> calls, list_kernel kernel) {
  list_tables tables;
  list_launch& launch = tables.launch;
  launch.kernel = kernel;
  for (const quantize_call& call : calls) {
    if (is_empty(call)) continue;
    list_task task{*task_of(call, kernel), 0};
    const bool divided = task.block_tiles.scale.rule == scale_rule::div;
    if (tables.tasks.empty()) {
      launch.tile_rows = task.block_tiles.tile_rows;
      launch.tile_cols = task.block_tiles.tile_cols;
      launch.skip = task.block_tiles.skip;
      launch.divided = divided;
      launch.from = call.in.format;
      launch.to = call.to;
    }
    launch.given &= call.inverse_scales.data != nullptr;
    launch.transposed |= call.outputs.codes_transposed.data != nullptr;
    const std::uint64_t blocks = kernel == list_kernel::rows ? row_block_count(task.block_tiles)
                                                             : block_count(task.block_tiles);
    // One launch has one cast: a division or a multiplication. Given inverse scales make the rule
    // te, a multiplication. Tensors that need the other cast are rounded by the definition.
    if (divided != launch.divided || call.cast.rounding != rounding::nearest_even) {
      task.block_tiles.by_definition = true;
    }
    constexpr std::uint64_t max_blocks = 0x7FFFFFFF;  // of one launch
    if (blocks > max_blocks - tables.tensor_of_block.size()) {
      throw invalid_argument("items: need more than 2^31 - 1 thread blocks in one launch");
    }
    task.first_block = static_cast<std::uint32_t>(tables.tensor_of_block.size());
    tables.tensor_of_block.insert(tables.tensor_of_block.end(), blocks,
                                  static_cast<std::uint32_t>(tables.tasks.size()));
    tables.tasks.push_back(task);
  }
  launch.blocks = static_cast<std::uint32_t>(tables.tensor_of_block.size());
  return tables;
}

void launch_list_tiles(const list_launch& list, cudaStream_t stream) {
  if (list.blocks == 0) return;
  backends::visit_quantized(list.from,
                            [&]<format_id From>() { launch_list_tiles_from<From>(list, stream); });
}

}  // namespace samebits::cuda
