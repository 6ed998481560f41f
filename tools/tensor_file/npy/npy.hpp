// NumPy's .npy files, versions 1.0 to 3.0: the header parser and the writer.
//
//   "\x93NUMPY" major minor length header data        length: 2 bytes (1.0) or 4, little endian
//   header = {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } spaces \n
//
// Source: NumPy, numpy.lib.format, "Format Version 1.0" to "3.0".
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "tensor_file/tensor_info.hpp"

namespace samebits::tensor_file {

/// NumPy's own limit for headers from unknown hands.
inline constexpr std::uint64_t max_npy_header_bytes = 10'000;

/// Reads the header of a whole .npy file; the data must fill the rest of it exactly. The header is
/// matched against its grammar, never evaluated. Throws file_error (malformed, unsupported).
tensor_info parse_npy(std::span<const std::byte> file);

/// What stands before the data of a .npy file of version 1.0 in C order, byte for byte as NumPy has
/// it. Throws std::invalid_argument as write_npy() does.
std::string npy_start(dtype type, std::span<const std::uint64_t> shape,
                      std::span<const std::byte> data);

/// Writes a .npy file of version 1.0 in C order, byte for byte as NumPy would, beside `path` and
/// then renames it into place: on failure `path` is what it was and nothing is left behind.
/// data holds the elements of the shape in C order, little endian.
/// Throws std::invalid_argument when .npy has no such element type, the rank exceeds 64 or data has
/// the wrong size; file_error (unwritable) with the path when the file cannot be written.
void write_npy(const std::filesystem::path& path, dtype type, std::span<const std::uint64_t> shape,
               std::span<const std::byte> data);

}  // namespace samebits::tensor_file
