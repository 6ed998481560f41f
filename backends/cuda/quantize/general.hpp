// Launches of the general kernels of quantization.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "backends/dispatch/quantize.hpp"
#include "numerics/quantize/scale.hpp"
#include "numerics/quantize/tile.hpp"

namespace samebits::cuda {

/// Bytes of device memory that launch_general() needs; 0 where one pass is enough.
std::size_t general_workspace(const backends::quantize_call& call);

/// Any quantization, by Arithmetic: numerics::binary32::integers or hardware.
template <class Arithmetic>
void launch_general(const backends::quantize_call& call, std::byte* workspace, cudaStream_t stream);

/// The amax and the scale of a whole matrix, in a workspace of one_scale_bytes.
inline constexpr std::size_t one_scale_bytes = 32;
struct one_scale_memory {
  numerics::tile_amax* amax;
  numerics::tile_scale* scale;
};
one_scale_memory one_scale_at(std::byte* workspace);

/// From the amax, or where it is given from the call's multiplier, to the scale; by the GPU's own
/// arithmetic. Stores the call's scale, too.
void launch_one_scale(const backends::quantize_call& call, const one_scale_memory& memory,
                      cudaStream_t stream);

}  // namespace samebits::cuda
