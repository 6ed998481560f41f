// The index of a model in several .safetensors files: model.safetensors.index.json.
//
//   {"metadata": {...}, "weight_map": {"layers.0.weight": "model-00001-of-00002.safetensors", ...}}
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace samebits::tensor_file {

/// Whether the name of a file ends with .index.json.
bool is_shard_index(const std::filesystem::path& path);

/// The names of the files in weight_map, sorted, each once.
/// @throws file_error  (malformed) unless the text is a JSON object with one weight_map, whose
///   values are plain file names: not empty, without a slash, not "." or ".."
std::vector<std::string> parse_shard_index(std::string_view json);

/// Reads an index; the paths of its files, in the index's folder.
/// @throws file_error  also if the index cannot be read; the message begins with the path
std::vector<std::filesystem::path> read_shard_index(const std::filesystem::path& path);

}  // namespace samebits::tensor_file
