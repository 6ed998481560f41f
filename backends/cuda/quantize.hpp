// The CUDA backends' quantizers.
#pragma once

#include <cstddef>

#include "backends/quantize.hpp"

namespace samebits::cuda {

/// Scales and codes by the definition in integers.
extern const backends::quantizer emulated_quantizer;
/// By the GPU's multiplication, division and FP8 conversion.
extern const backends::quantizer native_quantizer;

/// Tiles of one row up to 256 columns, and of 16 to 128 rows and as many columns or one, where rows
/// are contiguous; false where the call is not that.
bool has_patches(const backends::quantize_call& call);
bool try_launch_patches(const backends::quantize_call& call, void* stream);

/// The same with statistics, in one pass; the rest only where has_counted_patches().
bool has_counted_patches(const backends::quantize_call& call);
std::size_t counted_workspace(const backends::quantize_call& call);
void launch_counted_patches(const backends::quantize_call& call, std::byte* workspace,
                            void* stream);

}  // namespace samebits::cuda
