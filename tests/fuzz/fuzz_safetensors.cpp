// Fuzz target: parse_safetensors on arbitrary bytes.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "invariants.hpp"
#include "tensor_file/safetensors/safetensors.hpp"

namespace samebits::fuzz {
namespace {

using nlohmann::json;

// A second opinion on an accepted header: a document keeps only the last of two equal keys, so the
// number of entries tells whether there were any.
void require_document(std::string_view header, const tensor_file::file_contents& parsed) {
  const json document = json::parse(header, nullptr, false);
  require(document.is_object(), "the header is a JSON object");
  std::size_t entries = parsed.tensors.size();
  if (document.contains("__metadata__")) {
    ++entries;
    const json& metadata = document["__metadata__"];
    require(metadata.size() == parsed.metadata.size(), "every entry of __metadata__ is kept");
    for (const auto& [key, value] : parsed.metadata) {
      require(metadata.at(key).get<std::string>() == value, "__metadata__ is kept");
    }
  }
  require(document.size() == entries, "every tensor is kept");
  for (const tensor_info& info : parsed.tensors) {
    const json& object = document.at(info.name);
    require(object.size() == 3, "a tensor has three fields");
    require(object.at("dtype").get<std::string>() == name(info.type), "the dtype is kept");
    require(object.at("shape").get<std::vector<std::uint64_t>>() == info.shape,
            "the shape is kept");
    const std::uint64_t begin = info.offset - 8 - header.size();
    require(object.at("data_offsets") == json::array({begin, begin + info.bytes}),
            "the offsets are kept");
  }
}

void check(file_bytes file) {
  tensor_file::file_contents parsed;
  if (!accepts(parsed, [&] { return tensor_file::parse_safetensors(file); })) return;
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  require(length <= file.size() - 8, "the header lies in the file");

  std::uint64_t expected = 8 + length;
  for (const tensor_info& info : parsed.tensors) {
    require(info.offset == expected, "the tensors tile the data");
    expected += info.bytes;
    require_tensor(file, info);
  }
  require(expected == file.size(), "the tensors fill the file");
  require_document({reinterpret_cast<const char*>(file.data()) + 8, length}, parsed);
}

}  // namespace
}  // namespace samebits::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  samebits::fuzz::check(std::as_bytes(std::span(data, size)));
  return 0;
}
