// The CUDA backends' quantizers.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "backends/dispatch/quantize.hpp"

namespace samebits::cuda {

/// Scales and codes by the definition in integers.
extern const backends::quantizer emulated_quantizer;
/// By the GPU's multiplication, division and FP8 conversion.
extern const backends::quantizer native_quantizer;

/// quantize() of a checked call, without the self-test that comes before it.
void enqueue_quantize_emulated(const backends::quantize_call& call, void* stream);
void enqueue_quantize_native(const backends::quantize_call& call, void* stream);

/// Tiles of one row up to 256 columns, whole rows up to 2^18, and tiles of 16 to 128 rows and as
/// many columns or one, where rows are contiguous; false where the call is not that.
bool has_patches(const backends::quantize_call& call);
bool try_launch_patches(const backends::quantize_call& call, void* stream);

/// Where rows are contiguous and the matrix has one scale: its amax, which starts as
/// nothing_counted, and its codes by a scale; both pointers to device memory.
bool has_whole_tensor(const backends::quantize_call& call);
void launch_whole_amax(const backends::quantize_call& call, numerics::tile_amax* amax,
                       void* stream);
void launch_whole_tensor(const backends::quantize_call& call, const numerics::tile_scale* scale,
                         void* stream);

/// The tables of a list in device memory, for both backends.
std::shared_ptr<const void> prepare_list(std::span<const backends::quantize_call> calls);
void quantize_list_emulated(const backends::quantize_list_data& list, const executor& where);
void quantize_list_native(const backends::quantize_list_data& list, const executor& where);

/// Tiles with statistics, in one pass; the rest only where has_counted_patches().
bool has_counted_patches(const backends::quantize_call& call);
std::size_t counted_workspace(const backends::quantize_call& call);
void launch_counted_patches(const backends::quantize_call& call, std::byte* workspace,
                            void* stream);

}  // namespace samebits::cuda
