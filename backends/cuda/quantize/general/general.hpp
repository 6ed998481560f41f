// Launches of the general quantization kernels (any tile size, strides and outputs).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "backends/dispatch/calls/quantize.hpp"
#include "numerics/quantize/scale.hpp"
#include "numerics/quantize/tile.hpp"

namespace samebits::cuda {

/// Bytes of device memory that launch_general() needs; 0 where one pass is enough.
std::size_t general_workspace(const backends::quantize_call& call);

/// Enqueues any quantization. Arithmetic, the source of binary32 products and quotients, is
/// numerics::by_definition or hardware. `workspace` has general_workspace(call) bytes.
template <class Arithmetic>
void launch_general(const backends::quantize_call& call, std::byte* workspace, cudaStream_t stream);

/// Workspace of a call with one scale per matrix: its amax and its scale.
inline constexpr std::size_t one_scale_bytes = 32;
struct one_scale_memory {
  numerics::tile_amax* amax;
  numerics::tile_scale* scale;
};
one_scale_memory one_scale_at(std::byte* workspace);

/// Computes the scale of a matrix with one scale, from its amax or from the call's inverse scale,
/// by the GPU's own arithmetic. Stores the scale in memory.scale and in the call's outputs.
void launch_one_scale(const backends::quantize_call& call, const one_scale_memory& memory,
                      cudaStream_t stream);

}  // namespace samebits::cuda
