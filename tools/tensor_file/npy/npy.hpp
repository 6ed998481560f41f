// NumPy's .npy files, versions 1.0 to 3.0: headers to read and to write.
//
//   "\x93NUMPY" major minor length header data        length: 2 bytes (1.0) or 4, little endian
//   header = {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } spaces \n
//
// Source: NumPy, numpy.lib.format, "Format Version 1.0" to "3.0".
#pragma once

#include "tensor_file/tensor_info.hpp"

namespace samebits::tensor_file {

/// NumPy's own limit for headers from untrusted sources.
inline constexpr std::uint64_t max_npy_header_bytes = 10'000;

/// Reads the header of a complete .npy file. The data must fill the rest of the file exactly. The
/// header is matched against its grammar, never evaluated.
/// @throws file_error  (malformed, unsupported)
tensor_info parse_npy(std::span<const std::byte> file);

/// The same for a file of which only the start is at hand.
/// @param start  the whole file, or at least max_npy_header_bytes + 12 bytes of it
/// @param file_bytes  size of the file
tensor_info parse_npy_start(std::span<const std::byte> start, std::uint64_t file_bytes);

/// The bytes before the data of a .npy file (version 1.0, C order), identical to NumPy's.
/// @param data  the elements of the shape in C order, little-endian
/// @throws std::invalid_argument  if .npy has no such element type
/// @throws std::invalid_argument  if the rank exceeds 64 or data has the wrong size
std::string npy_start(dtype type, std::span<const std::uint64_t> shape,
                      std::span<const std::byte> data);

}  // namespace samebits::tensor_file
