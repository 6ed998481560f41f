// Decompresses deflate streams (RFC 1951) with zlib, if this build has zlib, and computes CRC-32.
#pragma once

#include "tensor_file/common.hpp"

namespace samebits::tensor_file {

/// The CRC-32 of zip archives; slower without zlib.
std::uint32_t crc32_of(std::span<const std::byte> bytes);

/// Whether this build has zlib. Without zlib the functions below throw std::logic_error.
bool can_inflate() noexcept;

/// Decompresses the start of a stream.
/// @returns the number of bytes written: out.size(), or fewer if the stream ends before
/// @throws file_error  (malformed) if the stream breaks a rule of deflate or is cut off
std::size_t inflate_start(std::span<const std::byte> packed, std::span<std::byte> out);

/// Decompresses a whole stream.
/// @throws file_error  (malformed) unless `packed` is one stream of out.size() bytes with this
///   CRC-32
void inflate_all(std::span<const std::byte> packed, std::span<std::byte> out, std::uint32_t crc32);

}  // namespace samebits::tensor_file
