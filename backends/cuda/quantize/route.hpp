// Which kernel of cuda-native takes a quantization: found once for a call, with its task and the
// bytes of workspace it needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backends/cuda/quantize/general.hpp"
#include "backends/cuda/quantize/statistics.cuh"
#include "backends/cuda/quantize/tiles/patch_task.cuh"
#include "backends/dispatch/quantize.hpp"

namespace samebits::cuda {

enum class quantize_kernel : std::uint8_t {
  general,     ///< any tiles, strides and outputs: general.cu
  blocks,      ///< tiles of up to 128 x 128 in a block's registers: tiles/block_tiles.cu
  rows,        ///< a scale per row: tiles/row_tiles.cu
  one_scale,   ///< a scale for the matrix: tensor_amax.cu, then tiles/block_tiles.cu
  statistics,  ///< tiles with statistics: tiles/statistics_tiles.cu
};

struct quantize_route {
  quantize_kernel kernel = quantize_kernel::general;
  patch_task task = {};       ///< of every kernel but the general ones
  std::size_t workspace = 0;  ///< bytes
};

quantize_route route_of(const backends::quantize_call& call);

/// The parts of the statistics in a workspace of the route's, quantize_kernel::statistics.
statistics_parts parts_of(const quantize_route& route, std::byte* workspace);

/// The task of each kernel, if it takes the call. Lists need one kernel for all their tensors.
std::optional<patch_task> block_task(const backends::quantize_call& call);
std::optional<patch_task> row_task(const backends::quantize_call& call);
std::optional<patch_task> one_scale_task(const backends::quantize_call& call);
std::optional<patch_task> statistics_task(const backends::quantize_call& call);

}  // namespace samebits::cuda
