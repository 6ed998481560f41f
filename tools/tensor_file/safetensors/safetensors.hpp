// .safetensors files: headers to read and to write.
//
//   N (8 bytes, little endian)  header (N bytes of JSON, padded with spaces)  data
//   {"name": {"dtype": "BF16", "shape": [3, 4], "data_offsets": [begin, end]}, ...,
//    "__metadata__": {"key": "text", ...}}             offsets count from the start of the data
//
// Source: the safetensors README, "Format", and the reject rules of its Rust reader, tensor.rs.
#pragma once

#include "tensor_file/tensor_info.hpp"

namespace samebits::tensor_file {

/// Limits for headers from untrusted sources. The first limit is part of the format. The other
/// limits keep the memory for a header within a few times its size.
struct safetensors_limits {
  std::uint64_t header_bytes = 100'000'000;
  std::size_t tensors = 1'000'000;
  std::size_t metadata = 65'536;  ///< entries of __metadata__
  std::size_t name_bytes = 4'096;
};

/// Reads the header of a complete .safetensors file. The tensors' data must cover the rest of the
/// file without gap or overlap.
/// @throws file_error  (malformed; unsupported for an unknown dtype)
file_contents parse_safetensors(std::span<const std::byte> file,
                                const safetensors_limits& limits = {});

/// A tensor to write; `data` has its elements in C order, little-endian.
struct named_tensor {
  std::string name;
  dtype type = dtype::u8;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> data;
};

/// The bytes before the data of a .safetensors file: length and header. The data follows in the given
/// order without gaps and starts at a multiple of 8 bytes. Wide elements first keep every tensor
/// aligned.
/// @throws std::invalid_argument  if data does not have the size of its shape
/// @throws std::invalid_argument  if names are not distinct UTF-8 texts
/// @throws std::invalid_argument  if .safetensors has no such element type
std::string safetensors_start(std::span<const named_tensor> tensors,
                              std::span<const std::pair<std::string, std::string>> metadata = {});
/// The same for data that is not in memory: only name, type and shape are read.
std::string safetensors_start(std::span<const tensor_info> tensors,
                              std::span<const std::pair<std::string, std::string>> metadata = {});

}  // namespace samebits::tensor_file
