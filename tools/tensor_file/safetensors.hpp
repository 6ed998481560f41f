// .safetensors files: the header parser.
//
//   N (8 bytes, little endian)  header (N bytes of JSON, padded with spaces)  data
//   {"name": {"dtype": "BF16", "shape": [3, 4], "data_offsets": [begin, end]}, ...,
//    "__metadata__": {"key": "text", ...}}             offsets count from the start of the data
//
// Source: the safetensors README, "Format", and the reject rules of its Rust reader, tensor.rs.
#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace samebits::tensor_file
