// The index of a model in several .safetensors files: implementation.
#include "tensor_file/safetensors/shard_index.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/files/mapped_file.hpp"

namespace samebits::tensor_file {
namespace {

using nlohmann::json;

[[noreturn]] void malformed_index(const std::string& message) { malformed("index: " + message); }

/// Parses JSON whose objects repeat no key, with at most 64 levels.
json parse_strictly(std::string_view text) {
  constexpr int deepest = 64;
  std::vector<std::set<std::string>> keys;  // of the objects around a position
  const auto check = [&](int depth, json::parse_event_t event, const json& parsed) {
    if (depth > deepest) malformed_index("nested too deeply");
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event != json::parse_event_t::key) return true;
    const auto& key = parsed.get_ref<const std::string&>();
    if (!keys.back().insert(key).second) malformed_index(quote(key) + " occurs twice");
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), check);
  } catch (const json::parse_error& error) {
    malformed_index("not JSON at byte " + std::to_string(error.byte));
  } catch (const json::out_of_range&) {
    malformed_index("a number beyond binary64");
  }
}

}  // namespace

bool is_shard_index(const std::filesystem::path& path) {
  return path.filename().string().ends_with(".index.json");
}

shard_map parse_shard_index(std::string_view text) {
  const json index = parse_strictly(text);
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
    if (!plain) malformed_index("weight_map: " + quote(file) + " is not the name of a file");
    files[name] = file;
  }
  return files;
}

shard_map read_shard_index(const std::filesystem::path& path) {
  return in_context(escape_path(path), [&] {
    const mapped_file file(path);
    const auto bytes = file.bytes();
    return parse_shard_index({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  });
}

}  // namespace samebits::tensor_file
