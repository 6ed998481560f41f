// Fuzz target: parse_shard_index on arbitrary bytes.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "invariants.hpp"
#include "tensor_file/safetensors/model_json.hpp"

namespace samebits::fuzz {
namespace {

using nlohmann::json;

void check(std::string_view text) {
  tensor_file::shard_map files;
  if (!accepts(files, [&] { return tensor_file::parse_shard_index(text); })) return;
  for (const auto& [name, file] : files) {
    const bool plain = !file.empty() && file != "." && file != ".." &&
                       file.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
    require(plain, "a file is in the folder of the index");
  }
  const json document = json::parse(text, nullptr, false);
  require(document.is_object() && document.contains("weight_map"), "the index has a weight_map");
  const json& map = document["weight_map"];
  require(map.is_object(), "weight_map is an object");
  require(map == json(files), "every tensor has its file");
}

}  // namespace
}  // namespace samebits::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  samebits::fuzz::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
