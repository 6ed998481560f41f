// .safetensors files: the header parser and the writer.
//
//   N (8 bytes, little endian)  header (N bytes of JSON, padded with spaces)  data
//   {"name": {"dtype": "BF16", "shape": [3, 4], "data_offsets": [begin, end]}, ...,
//    "__metadata__": {"key": "text", ...}}             offsets count from the start of the data
//
// Source: the safetensors README, "Format", and the reject rules of its Rust reader, tensor.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensor_file/tensor_info.hpp"

namespace samebits::tensor_file {

/// Headers from unknown hands are refused beyond these. The first is the format's own; the others
/// keep the memory that a header takes to a few times its size.
struct safetensors_limits {
  std::uint64_t header_bytes = 100'000'000;
  std::size_t tensors = 1'000'000;
  std::size_t metadata = 65'536;  ///< entries of __metadata__
  std::size_t name_bytes = 4'096;
};

struct safetensors_header {
  std::vector<tensor_info> tensors;                           ///< in the order of their data
  std::vector<std::pair<std::string, std::string>> metadata;  ///< sorted by key
};

/// Reads the header of a whole .safetensors file. The data of the tensors must tile the rest of the
/// file. Throws file_error (malformed; unsupported for an unknown dtype).
safetensors_header parse_safetensors(std::span<const std::byte> file,
                                     const safetensors_limits& limits = {});

/// A tensor to be written: data holds its elements in C order, little endian.
struct named_tensor {
  std::string name;
  dtype type = dtype::u8;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> data;
};

/// What stands before the data of a .safetensors file: length and header. Throws
/// std::invalid_argument as write_safetensors() does.
std::string safetensors_start(std::span<const named_tensor> tensors,
                              std::span<const std::pair<std::string, std::string>> metadata = {});

/// Writes a .safetensors file beside `path` and then renames it into place: on failure `path` is
/// what it was and nothing is left behind. The data lies in the given order without gaps, from a
/// multiple of 8 bytes on: wide elements first keep every tensor aligned.
/// Throws std::invalid_argument when data does not have the size of its shape, names are not
/// different UTF-8 texts or .safetensors has no such element type; file_error (unwritable) with the
/// path when the file cannot be written.
void write_safetensors(const std::filesystem::path& path, std::span<const named_tensor> tensors,
                       std::span<const std::pair<std::string, std::string>> metadata = {});

}  // namespace samebits::tensor_file
