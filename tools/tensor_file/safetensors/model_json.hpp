// The JSON files beside the tensors of a model: config.json, and the precision of its layers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

}  // namespace samebits::tensor_file
