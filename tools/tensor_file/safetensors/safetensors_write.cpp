// The header of .safetensors files to write.
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tensor_file/safetensors/safetensors.hpp"
#include "tensor_file/tensor_size.hpp"
#include "tensor_file/utf8.hpp"

namespace samebits::tensor_file {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw std::invalid_argument("safetensors_start: " + message);
}

void require_text(const std::string& text, const char* what) {
  if (find_invalid_utf8(text) != std::string_view::npos || text.find('\0') != std::string::npos) {
    refuse(cat(what, " must be UTF-8 without zero bytes"));
  }
}

/// The bytes that the elements take.
std::uint64_t writable_bytes(const tensor_info& tensor) {
  require_text(tensor.name, "a name");
  if (tensor.name == "__metadata__") refuse("no tensor may be called __metadata__");
  if (tensor.type == dtype::c128) refuse("type must be one that .safetensors has, not C128");
  try {
    return size_of(tensor.type, tensor.shape).bytes;
  } catch (const file_error& error) {
    refuse(cat("shape: ", error.what()));
  }
}

std::string header_of(std::span<const tensor_info> tensors,
                      std::span<const std::pair<std::string, std::string>> metadata) {
  std::string text = "{";
  std::set<std::string_view> names;
  const auto add = [&](std::string_view key, const nlohmann::ordered_json& value) {
    if (!names.insert(key).second) refuse("names must differ");
    text += (names.size() == 1 ? "" : ",") + nlohmann::json(key).dump() + ":" + value.dump();
  };
  nlohmann::ordered_json texts;
  for (const auto& [key, value] : metadata) {
    require_text(key, "a key");
    require_text(value, "a text");
    texts[key] = value;
  }
  if (!metadata.empty()) add("__metadata__", texts);
  std::uint64_t begin = 0;
  for (const tensor_info& tensor : tensors) {
    const std::uint64_t end = begin + writable_bytes(tensor);
    add(tensor.name,
        {{"dtype", name(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}});
    begin = end;
  }
  text += "}";
  // Like the format's own library: the data begins at a multiple of 8 bytes.
  constexpr std::size_t alignment = 8;
  text.append((alignment - text.size() % alignment) % alignment, ' ');
  return text;
}

}  // namespace

std::string safetensors_start(std::span<const tensor_info> tensors,
                              std::span<const std::pair<std::string, std::string>> metadata) {
  const std::string header = header_of(tensors, metadata);
  std::string start;
  for (int shift = 0; shift < 64; shift += 8) {
    start += static_cast<char>(std::uint64_t{header.size()} >> shift & 0xff);
  }
  return start + header;
}

std::string safetensors_start(std::span<const named_tensor> tensors,
                              std::span<const std::pair<std::string, std::string>> metadata) {
  std::vector<tensor_info> described;
  for (const named_tensor& tensor : tensors) {
    described.push_back({.name = tensor.name, .type = tensor.type, .shape = tensor.shape});
    const std::uint64_t bytes = writable_bytes(described.back());
    if (tensor.data.size() == bytes) continue;
    refuse(cat("data must have ", bytes, " bytes for its shape, not ", tensor.data.size()));
  }
  return safetensors_start(described, metadata);
}

}  // namespace samebits::tensor_file
