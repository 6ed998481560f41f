// Codebooks on the CUDA backends.
#pragma once

#include "backends/cuda/instructions/arithmetic.hpp"
#include "backends/dispatch/calls/codebook.hpp"

namespace samebits::cuda {

// Functions that enqueue checked calls, without a self-test.

void enqueue_quantize_blocks(const backends::quantize_blocks_call& call, arithmetic by,
                             void* stream);
void enqueue_dequantize_blocks(const backends::dequantize_blocks_call& call, arithmetic by,
                               void* stream);

}  // namespace samebits::cuda
