// The CUDA backends' quantizers.
#pragma once

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

/// dequantize() of a checked call, the same way.
void enqueue_dequantize_emulated(const backends::dequantize_call& call, void* stream);
void enqueue_dequantize_native(const backends::dequantize_call& call, void* stream);

/// The tables of a list in device memory, for both backends.
std::shared_ptr<const void> prepare_list(std::span<const backends::quantize_call> calls);
void quantize_list_emulated(const backends::quantize_list_data& list, const executor& where);
void quantize_list_native(const backends::quantize_list_data& list, const executor& where);

}  // namespace samebits::cuda
