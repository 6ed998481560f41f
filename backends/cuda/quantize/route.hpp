// Selects the cuda-native kernel that runs a quantization. route_of() returns the kernel, its
// launch parameters and the bytes of workspace that the kernel needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backends/cuda/quantize/general/general.hpp"
#include "backends/cuda/quantize/statistics.cuh"
#include "backends/cuda/quantize/tiles/tile_task.cuh"
#include "backends/dispatch/calls/quantize.hpp"

namespace samebits::cuda {

inline bool is_empty(const backends::quantize_call& call) {
  return call.in.rows == 0 || call.in.cols == 0;
}
inline bool one_row_tiles(const backends::quantize_call& call) { return call.grid.tile_rows == 1; }

/// The quantization kernels of cuda-native.
enum class quantize_kernel : std::uint8_t {
  general,     ///< any tiles, strides and outputs: general_kernels.cuh
  blocks,      ///< tiles of up to 128 x 128, held in registers: tiles/block/
  rows,        ///< one scale per row: tiles/row_tiles.cu
  one_scale,   ///< one scale per matrix: tensor_amax.cu, then tiles/block/
  statistics,  ///< tiles and statistics in one pass: tiles/statistics_tiles.cu
};

/// The kernel of a call, with its launch parameters.
struct quantize_route {
  quantize_kernel kernel = quantize_kernel::general;
  tile_task task = {};        ///< launch parameters; unused by quantize_kernel::general
  std::size_t workspace = 0;  ///< bytes of device memory
};

/// The kernel for a checked call: the first that supports the call, in the order statistics,
/// blocks, rows, one_scale, general.
quantize_route route_of(const backends::quantize_call& call);

/// The partial statistics in the workspace of a route whose kernel is quantize_kernel::statistics.
statistics_parts parts_of(const quantize_route& route, std::byte* workspace);

/// The launch parameters of one kernel, or nothing if that kernel does not support the call. A list
/// of tensors needs one kernel that supports all of its tensors.
std::optional<tile_task> block_task(const backends::quantize_call& call);
std::optional<tile_task> row_task(const backends::quantize_call& call);
std::optional<tile_task> one_scale_task(const backends::quantize_call& call);
std::optional<tile_task> statistics_task(const backends::quantize_call& call);

}  // namespace samebits::cuda
