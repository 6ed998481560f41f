// Fuzz target: parse_shard_index on arbitrary bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "invariants.hpp"
#include "tensor_file/safetensors/shard_index.hpp"

namespace samebits::fuzz {
namespace {

using nlohmann::json;

void check(std::string_view text) {
  std::vector<std::string> files;
  try {
    files = tensor_file::parse_shard_index(text);
  } catch (const tensor_file::file_error& error) {
    require_message(error);
    return;
  }
  require(std::is_sorted(files.begin(), files.end()), "the files are sorted");
  require(std::adjacent_find(files.begin(), files.end()) == files.end(), "each file occurs once");
  for (const std::string& file : files) {
    const bool plain = !file.empty() && file != "." && file != ".." &&
                       file.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
    require(plain, "a file is in the folder of the index");
  }
  // A document keeps only the last of two equal keys.
  const json document = json::parse(text, nullptr, false);
  require(document.is_object() && document.contains("weight_map"), "the index has a weight_map");
  const json& map = document["weight_map"];
  require(map.is_object(), "weight_map is an object");
  for (const json& file : map) {
    require(file.is_string(), "weight_map has strings");
    require(std::binary_search(files.begin(), files.end(), file.get<std::string>()),
            "every file is listed");
  }
}

}  // namespace
}  // namespace samebits::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  samebits::fuzz::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
