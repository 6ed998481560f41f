// The index of a model in several .safetensors files: model.safetensors.index.json.
//
//   {"metadata": {...}, "weight_map": {"layers.0.weight": "model-00001-of-00002.safetensors", ...}}
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace samebits::tensor_file {

/// Whether the name of a file ends with .index.json.
bool is_shard_index(const std::filesystem::path& path);

/// The file of each tensor in weight_map, by the tensor's name.
using shard_map = std::map<std::string, std::string>;

/// @throws file_error  (malformed) unless the text is a JSON object with one weight_map, whose
///   values are plain file names: not empty, without a slash, not "." or ".."; and if an object
///   repeats a key
shard_map parse_shard_index(std::string_view text);

/// Reads an index, whose files are in its folder.
/// @throws file_error  also if the index cannot be read; the message begins with the path
shard_map read_shard_index(const std::filesystem::path& path);

/// The text of an index.
/// @param bytes  of the elements of all tensors
std::string shard_index_text(const shard_map& files, std::uint64_t bytes);

}  // namespace samebits::tensor_file
