// The JSON header of a .safetensors file as written, before its numbers are checked.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor_file/dtype.hpp"
#include "tensor_file/safetensors/safetensors.hpp"

namespace samebits::tensor_file {

/// One tensor object.
struct safetensors_entry {
  std::string name;
  dtype type = dtype::u8;
  std::vector<std::uint64_t> shape;
  std::array<std::uint64_t, 2> data_offsets{};
};

/// The contents of a header, not yet checked against the file.
struct safetensors_json {
  std::vector<safetensors_entry> entries;                     ///< in the order of the header
  std::vector<std::pair<std::string, std::string>> metadata;  ///< sorted by key
};

/// Parses the header text, which starts at byte 8 of the file.
/// @throws file_error  (unsupported) for an unknown dtype
/// @throws file_error  (malformed) unless the header is one JSON object with these members: tensor
///   objects with exactly the three fields, and at most one __metadata__ object of strings. No
///   object may repeat a key.
safetensors_json parse_safetensors_json(std::string_view header, const safetensors_limits& limits);

}  // namespace samebits::tensor_file
