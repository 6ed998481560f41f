// The JSON files beside the tensors of a model: implementation.
#include "tensor_file/safetensors/model_json.hpp"

#include <nlohmann/json.hpp>

#include "tensor_file/files/mapped_file.hpp"

namespace samebits::tensor_file {
namespace {

/// Parses a text.
/// @tparam json  nlohmann::json, or ordered_json, whose members keep their order and whose objects
///   take quadratic time
/// @throws file_error  (malformed) unless it is JSON whose objects repeat no key, with at most 64
///   levels
template <class json>
json parse_strictly(std::string_view text) {
  constexpr int deepest = 64;
  std::vector<std::set<std::string>> keys;  // of the objects around a position
  const auto check = [&](int depth, typename json::parse_event_t event, const json& parsed) {
    if (depth > deepest) malformed("nested too deeply");
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event != json::parse_event_t::key) return true;
    const auto& key = parsed.template get_ref<const std::string&>();
    if (!keys.back().insert(key).second) malformed(quote(key), " occurs twice");
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), check);
  } catch (const typename json::parse_error& error) {
    malformed("not JSON at byte ", error.byte);
  } catch (const typename json::out_of_range&) {
    malformed("a number beyond binary64");
  }
}

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
    malformed_if(key != "version" && key != "layers" && key != "comment", quoted{key},
                 " is no entry; there are version, layers, comment");
  }
  malformed_if(
      !map.contains("version") || !map["version"].is_number_integer() || map["version"] != 1,
      "version: must be 1");
  malformed_if(!map.contains("layers") || !map["layers"].is_object(),
               "layers: expected an object of patterns");
  std::vector<std::pair<std::string, std::string>> layers;
  for (const auto& [pattern, precision] : map["layers"].items()) {
    if (pattern.empty()) malformed("layers: a pattern is empty; write \"*\" for every layer");
    malformed_if(!precision.is_string(), "layers: ", quoted{pattern},
                 ": expected a string such as \"TE_CURRENT\"");
    layers.emplace_back(pattern, precision.get<std::string>());
  }
  return layers;
}

// --- The index of a model in several files -------------------------------------------------------

namespace {

[[noreturn]] void malformed_index(const std::string& message) { malformed("index: " + message); }

}  // namespace

bool is_shard_index(const std::filesystem::path& path) {
  return path.filename().string().ends_with(".index.json");
}

shard_map parse_shard_index(std::string_view text) {
  const auto index = in_context("index", [&] { return parse_strictly<nlohmann::json>(text); });
  if (!index.is_object()) malformed_index("expected an object");
  const auto map = index.find("weight_map");
  if (map == index.end()) malformed_index("there is no weight_map");
  if (!map->is_object()) malformed_index("weight_map: expected an object");
  shard_map files;
  for (const auto& [name, value] : map->items()) {
    if (!value.is_string()) malformed_index("weight_map: expected strings");
    const auto& file = value.get_ref<const std::string&>();
    const bool plain = !file.empty() && file != "." && file != ".." &&
                       file.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
    if (!plain) malformed_index(cat("weight_map: ", quote(file), " is not the name of a file"));
    files[name] = file;
  }
  return files;
}

shard_map read_shard_index(const std::filesystem::path& path) {
  return in_context(escape_path(path),
                    [&] { return parse_shard_index(text_of(mapped_file(path).bytes())); });
}

std::string shard_index_text(const shard_map& files, std::uint64_t bytes) {
  nlohmann::json index;
  index["metadata"]["total_size"] = bytes;
  index["weight_map"] = files;
  return index.dump(2) + "\n";
}

}  // namespace samebits::tensor_file
