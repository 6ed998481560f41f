// The header of .safetensors files to write.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tensor_file/error.hpp"
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
    refuse(std::string(what) + " must be UTF-8 without zero bytes");
  }
}

void require_writable(const named_tensor& tensor) {
  require_text(tensor.name, "a name");
  if (tensor.name == "__metadata__") refuse("no tensor may be called __metadata__");
  if (tensor.type == dtype::c128) refuse("type must be one that .safetensors has, not C128");
  std::uint64_t bytes = 0;
  try {
    bytes = size_of(tensor.type, tensor.shape).bytes;
  } catch (const file_error& error) {
    refuse(std::string("shape: ") + error.what());
  }
  if (tensor.data.size() != bytes) {
    refuse("data must have " + std::to_string(bytes) + " bytes for its shape, not " +
           std::to_string(tensor.data.size()));
  }
}

std::string header_of(std::span<const named_tensor> tensors,
                      std::span<const std::pair<std::string, std::string>> metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  for (const auto& [key, text] : metadata) {
    require_text(key, "a key");
    require_text(text, "a text");
    header["__metadata__"][key] = text;
  }
  std::uint64_t begin = 0;
  for (const named_tensor& tensor : tensors) {
    require_writable(tensor);
    if (header.contains(tensor.name)) refuse("names must differ");
    const std::uint64_t end = begin + tensor.data.size();
    header[tensor.name] = {
        {"dtype", name(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  // Like the format's own library: the data begins at a multiple of 8 bytes.
  constexpr std::size_t alignment = 8;
  std::string text = header.dump();
  text.append((alignment - text.size() % alignment) % alignment, ' ');
  return text;
}

}  // namespace

std::string safetensors_start(std::span<const named_tensor> tensors,
                              std::span<const std::pair<std::string, std::string>> metadata) {
  const std::string header = header_of(tensors, metadata);
  std::string start;
  for (int shift = 0; shift < 64; shift += 8) {
    start += static_cast<char>(std::uint64_t{header.size()} >> shift & 0xff);
  }
  return start + header;
}

}  // namespace samebits::tensor_file
