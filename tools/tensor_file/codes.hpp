// Element access: a tensor as codes in logical order, whatever its layout in the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tensor_file/tensor_info.hpp"

namespace samebits::tensor_file {

/// Writes the codes of elements [first, first + count) to out, which has room for
/// count * code_bytes(info.type) bytes and need not be aligned. Elements are numbered in C order of
/// the shape, last index fastest, also when the file stores them in Fortran order. Codes are little
/// endian; elements below a byte (F4: low nibble first; F6: a little-endian bit stream, 4 elements
/// in 3 bytes) become one byte each with high bits 0.
/// Throws std::out_of_range when the elements are not in the tensor, its bytes not in the file, or
/// info contradicts itself; file_error when the size of info.shape exceeds 64 bits.
void read_codes(std::span<const std::byte> file, const tensor_info& info, std::uint64_t first,
                std::uint64_t count, std::byte* out);

/// The elements as a file holds them: read_codes() the other way round. codes: count *
/// code_bytes(type) bytes; bits above those of an element are cleared.
/// Throws file_error (malformed) when elements below a byte do not fill their last byte.
std::vector<std::byte> pack_codes(dtype type, std::span<const std::byte> codes);

/// The bytes of the tensor as they lie in the file.
/// Throws std::out_of_range when they are not in the file.
std::span<const std::byte> data_bytes(std::span<const std::byte> file, const tensor_info& info);

/// The same bytes if they already are what read_codes would write for the whole tensor, and aligned
/// for their element type; otherwise nothing.
std::optional<std::span<const std::byte>> view_codes(std::span<const std::byte> file,
                                                     const tensor_info& info);

}  // namespace samebits::tensor_file
