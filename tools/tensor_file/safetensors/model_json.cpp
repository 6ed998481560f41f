// The JSON files beside the tensors of a model: implementation.
#include "tensor_file/safetensors/model_json.hpp"

#include "tensor_file/safetensors/strict_json.hpp"

namespace samebits::tensor_file {
namespace {

nlohmann::ordered_json parse_object(std::string_view text) {
  nlohmann::ordered_json object = parse_strictly<nlohmann::ordered_json>(text);
  if (!object.is_object()) malformed("expected an object");
  return object;
}

}  // namespace

std::string changed_config(std::string_view text, const std::vector<json_change>& changes) {
  nlohmann::ordered_json config = parse_object(text);
  for (const auto& [key, value, only_existing] : changes) {
    const std::string name(key);
    if (only_existing && !config.contains(name)) continue;
    if (value) {
      config[name] = nlohmann::ordered_json::parse(*value);
    } else {
      config.erase(name);
    }
  }
  return config.dump(2) + "\n";
}

bool has_quantization_config(std::string_view text) {
  return parse_object(text).contains("quantization_config");
}

std::vector<std::pair<std::string, std::string>> parse_precision_map(std::string_view text) {
  const nlohmann::ordered_json map = parse_object(text);
  for (const auto& [key, value] : map.items()) {
    if (key != "version" && key != "layers" && key != "comment") {
      malformed(quote(key) + " is no entry; there are version, layers, comment");
    }
  }
  if (!map.contains("version") || !map["version"].is_number_integer() || map["version"] != 1) {
    malformed("version: must be 1");
  }
  if (!map.contains("layers") || !map["layers"].is_object()) {
    malformed("layers: expected an object of patterns");
  }
  std::vector<std::pair<std::string, std::string>> layers;
  for (const auto& [pattern, precision] : map["layers"].items()) {
    if (pattern.empty()) malformed("layers: a pattern is empty; write \"*\" for every layer");
    if (!precision.is_string()) {
      malformed("layers: " + quote(pattern) + ": expected a string such as \"TE_CURRENT\"");
    }
    layers.emplace_back(pattern, precision.get<std::string>());
  }
  return layers;
}

}  // namespace samebits::tensor_file
