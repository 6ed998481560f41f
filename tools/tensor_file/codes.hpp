// Element access: reads a tensor as codes in logical order, for any layout in the file.
#pragma once

#include "tensor_file/tensor_info.hpp"

namespace samebits::tensor_file {

/// Writes the codes of elements [first, first + count) to `out`.
///
/// Elements are numbered in C order of the shape (last index fastest), whatever their strides in
/// the file. Codes are little-endian. Elements of less than a byte become one byte each
/// with high bits 0 (F4: low nibble first; F6: a little-endian bit stream, 4 elements in 3 bytes).
///
/// @param out  count * code_bytes(info.type) bytes; needs no alignment
/// @throws std::out_of_range  if the elements are not in the tensor
/// @throws  what data_bytes() throws
void read_codes(std::span<const std::byte> file, const tensor_info& info, std::uint64_t first,
                std::uint64_t count, std::byte* out);

/// Packs codes to elements as a file stores them; the inverse of read_codes().
/// @param codes  count * code_bytes(type) bytes; bits above those of an element are cleared
/// @throws file_error  (malformed) if elements of less than a byte do not fill their last byte
std::vector<std::byte> pack_codes(dtype type, std::span<const std::byte> codes);

/// The bytes of the file from the first element of the tensor to its last one.
/// @throws std::out_of_range  if the bytes are not in the file, or info contradicts itself
/// @throws file_error  if the size of info.shape exceeds 64 bits
std::span<const std::byte> data_bytes(std::span<const std::byte> file, const tensor_info& info);

/// The bytes of the whole tensor, if read_codes() would only copy them and they are aligned for
/// their element type. Otherwise nothing.
std::optional<std::span<const std::byte>> view_codes(std::span<const std::byte> file,
                                                     const tensor_info& info);

// Blocks of GGUF files: a scale in fp16 and 32 integers.
//
//   Q8_0: scale, 32 integers of 8 bits                       element = integer * scale
//   Q4_0: scale, 16 bytes: elements 0..15 in the low halves, 16..31 in the high ones
//                                                            element = (integer - 8) * scale
//
// Source: ggml, src/ggml-common.h (block_q8_0, block_q4_0), src/ggml-quants.c (dequantize_row_*).

inline constexpr std::uint64_t block_elements = 32;

/// Bytes in the file of a tensor whose strides are empty.
std::uint64_t stored_bytes(const tensor_info& info);

}  // namespace samebits::tensor_file
