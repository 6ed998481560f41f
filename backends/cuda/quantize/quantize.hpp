// The quantizers of the CUDA backends: dense calls, lists of tensors and dequantization.
#pragma once

#include <memory>
#include <span>

#include "backends/dispatch/quantize.hpp"

namespace samebits::cuda {

/// The quantization functions of cuda-emulated. They compute scales and codes by the definition in
/// integers.
extern const backends::quantizer emulated_quantizer;
/// The quantization functions of cuda-native. They scale with the GPU's binary32 multiplication and
/// division. They round with the GPU's FP8 conversion if it gives the codes of the definition,
/// otherwise by other steps.
extern const backends::quantizer native_quantizer;

/// Enqueues the quantization of a checked call, without the self-test that quantize() runs first.
void enqueue_quantize_emulated(const backends::quantize_call& call, void* stream);
void enqueue_quantize_native(const backends::quantize_call& call, void* stream);

/// Enqueues the dequantization of a checked call, without the self-test that dequantize() runs
/// first.
void enqueue_dequantize_emulated(const backends::dequantize_call& call, void* stream);
void enqueue_dequantize_native(const backends::dequantize_call& call, void* stream);

/// Builds the tables of a list of tensors in device memory. Both CUDA backends use the same tables.
std::shared_ptr<const void> prepare_list(std::span<const backends::quantize_call> calls);
void quantize_list_emulated(const backends::quantize_list_data& list, const executor& where);
void quantize_list_native(const backends::quantize_list_data& list, const executor& where);

}  // namespace samebits::cuda
