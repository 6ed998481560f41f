// The JSON files beside the tensors of a model: config.json, the precision of its layers, and the index
// of its files.
#pragma once

#include <map>

#include "tensor_file/common.hpp"

namespace samebits::tensor_file {

/// A member of an object, and the JSON text of its new value; nothing: the member is removed.
struct json_change {
  std::string_view key;
  std::optional<std::string> value;
  bool only_existing = false;  ///< changes nothing if there is no such member
};

/// The text of config.json with changed members; the others keep their order.
/// @throws file_error  (malformed) unless it is one object that repeats no key
std::string changed_config(std::string_view text, const std::vector<json_change>& changes);

/// Whether the text of config.json has a member `quantization_config`.
/// @throws file_error  as changed_config()
bool has_quantization_config(std::string_view text);

/// Patterns of layer names with the precision of each, in order: what
/// samebits.torch.load_precision_map reads, {"version": 1, "layers": {"*.mlp.*": "TE_CURRENT"}}.
/// @throws file_error  (malformed) for any other text
std::vector<std::pair<std::string, std::string>> parse_precision_map(std::string_view text);

// --- The index of a model in several files: model.safetensors.index.json -------------------------
//
//   {"metadata": {...}, "weight_map": {"layers.0.weight": "model-00001-of-00002.safetensors", ...}}

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
