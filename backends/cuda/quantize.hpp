// The CUDA backends' quantizers.
#pragma once

#include "backends/quantize.hpp"

namespace samebits::cuda {

/// Scales and codes by the definition in integers.
extern const backends::quantizer emulated_quantizer;
/// By the GPU's multiplication, division and FP8 conversion.
extern const backends::quantizer native_quantizer;

/// Tiles of one row, 64 x 64 or 128 x 128, contiguous and aligned, row-wise codes only; false where
/// the call is not that.
bool try_launch_tiles(const backends::quantize_call& call, void* stream);

}  // namespace samebits::cuda
