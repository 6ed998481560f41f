// Elements of GGUF files that are stored in blocks: a scale in fp16 and 32 integers.
//
//   Q8_0: scale, 32 integers of 8 bits                       element = integer * scale
//   Q4_0: scale, 16 bytes: elements 0..15 in the low halves, 16..31 in the high ones
//                                                            element = (integer - 8) * scale
//
// Source: ggml, src/ggml-common.h (block_q8_0, block_q4_0), src/ggml-quants.c (dequantize_row_*).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor_file/tensor_info.hpp"

namespace samebits::tensor_file {

inline constexpr std::uint64_t block_elements = 32;

/// Bytes in the file of a tensor whose strides are empty.
std::uint64_t stored_bytes(const tensor_info& info);

/// Writes elements [first, first + count) in fp32, which holds every product exactly.
/// @param data  the blocks of the tensor
void read_blocks(block_layout blocks, const std::byte* data, std::uint64_t first,
                 std::uint64_t count, std::byte* out);

}  // namespace samebits::tensor_file
