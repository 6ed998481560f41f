// The index of a model in several .safetensors files: implementation.
#include "tensor_file/safetensors/shard_index.hpp"

#include <nlohmann/json.hpp>

#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/files/mapped_file.hpp"
#include "tensor_file/safetensors/strict_json.hpp"

namespace samebits::tensor_file {
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

std::string shard_index_text(const shard_map& files, std::uint64_t bytes) {
  nlohmann::json index;
  index["metadata"]["total_size"] = bytes;
  index["weight_map"] = files;
  return index.dump(2) + "\n";
}

}  // namespace samebits::tensor_file
