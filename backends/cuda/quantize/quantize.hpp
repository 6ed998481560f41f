// Quantization on the CUDA backends: matrices, lists of tensors, codebooks and dequantization.
#pragma once

#include <memory>
#include <span>

#include "backends/cuda/instructions/arithmetic.hpp"
#include "backends/dispatch/calls/codebook.hpp"
#include "backends/dispatch/calls/quantize.hpp"

namespace samebits::cuda {

// Functions that enqueue checked calls, without a self-test.

/// Quantization. By the definition: scales and codes in integers. By hardware: scales with the GPU's
/// binary32 multiplication and division. Rounds with the GPU's FP8 conversion if it gives the codes of
/// the definition, otherwise by other steps.
void enqueue_quantize(const backends::quantize_call& call, arithmetic by, void* stream);
/// Bytes of workspace of a call of cuda-native; general_workspace() (general.hpp) of cuda-emulated.
std::size_t workspace_native(const backends::quantize_call& call);

void enqueue_dequantize(const backends::dequantize_call& call, arithmetic by, void* stream);

/// Builds the tables of a list of tensors in device memory. Both CUDA backends use the same tables.
std::shared_ptr<const void> prepare_list(std::span<const backends::quantize_call> calls);
void enqueue_list(const backends::quantize_list_data& list, arithmetic by, void* stream);

void enqueue_quantize_blocks(const backends::quantize_blocks_call& call, arithmetic by,
                             void* stream);
void enqueue_dequantize_blocks(const backends::dequantize_blocks_call& call, arithmetic by,
                               void* stream);

}  // namespace samebits::cuda
