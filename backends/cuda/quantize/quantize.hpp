// Quantization on the CUDA backends: matrices, lists of tensors and dequantization.
#pragma once

#include <memory>
#include <span>

#include "backends/dispatch/calls/quantize.hpp"

namespace samebits::cuda {

// Functions that enqueue checked calls, without a self-test.

/// Quantization of cuda-emulated: computes scales and codes by the definition in integers.
void enqueue_quantize_emulated(const backends::quantize_call& call, void* stream);
/// Quantization of cuda-native: scales with the GPU's binary32 multiplication and division. Rounds
/// with the GPU's FP8 conversion if it gives the codes of the definition, otherwise by other steps.
void enqueue_quantize_native(const backends::quantize_call& call, void* stream);
/// Bytes of workspace of a call of cuda-native; general_workspace() (general.hpp) of cuda-emulated.
std::size_t workspace_native(const backends::quantize_call& call);

void enqueue_dequantize_emulated(const backends::dequantize_call& call, void* stream);
void enqueue_dequantize_native(const backends::dequantize_call& call, void* stream);

/// Builds the tables of a list of tensors in device memory. Both CUDA backends use the same tables.
std::shared_ptr<const void> prepare_list(std::span<const backends::quantize_call> calls);
void enqueue_list_emulated(const backends::quantize_list_data& list, void* stream);
void enqueue_list_native(const backends::quantize_list_data& list, void* stream);

}  // namespace samebits::cuda
