// .safetensors files: the header parser.
#include "tensor_file/safetensors/safetensors.hpp"

#include <algorithm>
#include <string_view>

#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/safetensors/safetensors_json.hpp"
#include "tensor_file/tensor_size.hpp"
#include "tensor_file/utf8.hpp"

namespace samebits::tensor_file {
namespace {

constexpr std::uint64_t length_bytes = 8;

// The header, with its length checked, including the spaces that pad it.
std::string_view find_header(std::span<const std::byte> file, const safetensors_limits& limits) {
  if (file.size() < length_bytes) {
    malformed("byte 0: the file has " + std::to_string(file.size()) +
              " bytes; a .safetensors file begins with 8 bytes of header length");
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  }
  if (length > limits.header_bytes) {
    malformed("byte 0: a header of " + std::to_string(length) + " bytes; at most " +
              std::to_string(limits.header_bytes) + " are read");
  }
  if (length > file.size() - length_bytes) {
    malformed("byte 0: a header of " + std::to_string(length) + " bytes, but the file has only " +
              std::to_string(file.size() - length_bytes) + " more");
  }
  return {reinterpret_cast<const char*>(file.data()) + length_bytes, length};
}

// Returns the JSON object without the spaces after it. This check is stricter than the JSON parser.
// The parser would accept a byte order mark before the object, other white space after it, and any
// text after a zero byte.
std::string_view require_object(std::string_view header) {
  if (!header.starts_with('{')) malformed("byte 8: the header must begin with '{'");
  const std::size_t invalid = find_invalid_utf8(header);
  if (invalid != std::string_view::npos) {
    malformed("byte " + std::to_string(length_bytes + invalid) + ": the header is not UTF-8");
  }
  const std::size_t zero = header.find('\0');
  if (zero != std::string_view::npos) {
    malformed("byte " + std::to_string(length_bytes + zero) +
              ": the header is not JSON: it holds a zero byte");
  }
  const std::size_t last = header.find_last_not_of(' ');
  if (header[last] != '}') {
    malformed("byte " + std::to_string(length_bytes + last) +
              ": the header must end in '}' and spaces");
  }
  return header.substr(0, last + 1);
}

// Checks one entry alone. Its offset still counts from the start of the data.
tensor_info checked(safetensors_entry&& entry) {
  const std::string where = "tensor " + quote(entry.name) + ": ";
  const tensor_size size =
      in_context("tensor " + quote(entry.name), [&] { return size_of(entry.type, entry.shape); });
  const auto [begin, end] = entry.data_offsets;
  if (end < begin) {
    malformed(where + "data_offsets end at " + std::to_string(end) + ", before they begin at " +
              std::to_string(begin));
  }
  if (end - begin != size.bytes) {
    malformed(where + "data_offsets span " + std::to_string(end - begin) +
              " bytes where shape and dtype need " + std::to_string(size.bytes));
  }
  tensor_info info;
  info.name = std::move(entry.name);
  info.type = entry.type;
  info.shape = std::move(entry.shape);
  info.offset = begin;
  info.bytes = size.bytes;
  info.count = size.count;
  return info;
}

// Requires that the tensors, sorted by offset, cover [0, data_bytes) without gap or overlap.
void require_tiling(const std::vector<tensor_info>& tensors, std::uint64_t data_bytes) {
  std::uint64_t expected = 0;
  for (const tensor_info& info : tensors) {
    if (info.offset != expected) {
      malformed("tensor " + quote(info.name) + ": its data begins at " +
                std::to_string(info.offset) + ", which leaves a hole or overlaps: expected " +
                std::to_string(expected));
    }
    expected += info.bytes;
  }
  if (expected != data_bytes) {
    malformed("the tensors end at byte " + std::to_string(expected) +
              " of the data, but the file has " + std::to_string(data_bytes));
  }
}

}  // namespace

file_contents parse_safetensors(std::span<const std::byte> file, const safetensors_limits& limits) {
  const std::string_view header = find_header(file, limits);
  safetensors_json json = parse_safetensors_json(require_object(header), limits);
  file_contents result;
  result.metadata = std::move(json.metadata);
  result.tensors.reserve(json.entries.size());
  for (safetensors_entry& entry : json.entries) result.tensors.push_back(checked(std::move(entry)));

  // Empty tensors share their offset with the next tensor and are sorted before it.
  std::stable_sort(result.tensors.begin(), result.tensors.end(),
                   [](const tensor_info& a, const tensor_info& b) {
                     return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;
                   });
  const std::uint64_t data_start = length_bytes + header.size();
  require_tiling(result.tensors, file.size() - data_start);
  for (tensor_info& info : result.tensors) info.offset += data_start;
  return result;
}

}  // namespace samebits::tensor_file
