// GGUF files: implementation.
#include "tensor_file/gguf/gguf.hpp"

#include "tensor_file/codes.hpp"
#include "tensor_file/files/file_cursor.hpp"
#include "tensor_file/gguf/gguf_types.hpp"
#include "tensor_file/tensor_size.hpp"
#include "tensor_file/utf8.hpp"

namespace samebits::tensor_file {
namespace {

struct gguf_counts {
  std::uint64_t tensors = 0;
  std::uint64_t pairs = 0;
};

gguf_counts read_start(file_cursor& in) {
  constexpr std::uint32_t magic = 0x46554747;  // "GGUF"
  malformed_if(in.read<std::uint32_t>("the magic number") != magic,
               "byte 0: a GGUF file begins with GGUF");
  const auto version = in.read<std::uint32_t>("the version");
  if (version != 2 && version != 3) {
    const bool swapped = version != 0 && (version & 0xffffff) == 0;
    unsupported(swapped ? "byte 4: a big-endian GGUF file"
                        : cat("byte 4: GGUF version ", version, "; versions 2 and 3 are read"));
  }
  gguf_counts counts;
  counts.tensors = in.read<std::uint64_t>("the number of tensors");
  counts.pairs = in.read<std::uint64_t>("the number of key-value pairs");
  return counts;
}

// The types of values in key-value pairs.
constexpr std::uint32_t uint32_value = 4;
constexpr std::uint32_t string_value = 8;
constexpr std::uint32_t array_value = 9;

// The size of a value of this type; 0 for strings and arrays.
std::uint64_t bytes_of_value(const file_cursor& in, std::uint32_t type) {
  constexpr std::uint64_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  if (type >= std::size(sizes)) in.fail("unknown type ", type, " of a value");
  return sizes[type];
}

void skip_value(file_cursor& in, std::uint32_t type, int depth) {
  constexpr int deepest = 8;
  if (type == string_value) {
    static_cast<void>(in.read_string("a string"));
  } else if (type == array_value) {
    if (depth == deepest) in.fail("arrays are nested too deeply");
    const auto of = in.read<std::uint32_t>("an array");
    const auto count = in.read<std::uint64_t>("an array");
    const std::uint64_t bytes = bytes_of_value(in, of);
    // An array in an array has at least 12 bytes, a string 8.
    const std::uint64_t least = bytes != 0 ? bytes : std::uint64_t{8};
    if (count > in.rest() / least) in.fail("the file ends before the end of an array");
    if (bytes != 0) return in.skip(count * bytes, "an array");
    for (std::uint64_t i = 0; i < count; ++i) skip_value(in, of, depth + 1);
  } else {
    in.skip(bytes_of_value(in, type), "a value");
  }
}

/// Skips the pairs; returns the alignment of the data.
std::uint64_t read_pairs(file_cursor& in, std::uint64_t pairs) {
  std::uint64_t alignment = 32;
  bool seen = false;
  for (std::uint64_t i = 0; i < pairs; ++i) {
    const std::string_view key = in.read_string("a key");
    const auto type = in.read<std::uint32_t>("the type of a value");
    if (key != "general.alignment") {
      skip_value(in, type, 0);
      continue;
    }
    if (seen) in.fail("the key general.alignment occurs twice");
    if (type != uint32_value) in.fail("general.alignment must be an integer of type UINT32");
    alignment = in.read<std::uint32_t>("general.alignment");
    if (alignment == 0 || alignment % 8 != 0) {
      in.fail("general.alignment must be a multiple of 8, not ", alignment);
    }
    seen = true;
  }
  return alignment;
}

// Sets type, bytes and count, or says why the elements are not read.
void set_type(tensor_info& info, std::uint32_t number) {
  const auto* const type = std::ranges::find(gguf_types, number, &gguf_type::number);
  const bool is_known = type != std::end(gguf_types);
  info.blocks = blocks_of(number);
  if (info.blocks != block_layout::none &&
      (info.shape.empty() || info.shape.back() % block_elements != 0)) {
    malformed("a tensor of ", type->name, " must have rows of whole blocks of 32");
  }
  if (is_known && (type->elements || info.blocks != block_layout::none)) {
    info.type = type->elements.value_or(dtype::f32);
    return set_size(info);
  }
  info.unread = is_known ? cat("elements are quantized in blocks of ", type->name)
                         : cat("elements are of the GGUF type ", number);
  info.count = size_of(dtype::u8, info.shape).count;
}

// Reads one tensor info. Its offset still counts from the start of the data.
tensor_info read_tensor(file_cursor& in, std::uint64_t alignment) {
  constexpr std::size_t longest_name = 4096;
  tensor_info info;
  const std::string_view name = in.read_string("the name of a tensor");
  if (name.size() > longest_name) in.fail("the name of a tensor has more than 4096 bytes");
  if (find_invalid_utf8(name) != std::string_view::npos) {
    in.fail("the name of a tensor is not UTF-8: ", quote(name));
  }
  info.name = name;
  const std::string where = "tensor " + quote(name) + ": ";
  const auto rank = in.read<std::uint32_t>("the rank of a tensor");
  if (rank > max_rank) malformed(where, "it has more than 64 dimensions");
  for (std::uint32_t k = 0; k < rank; ++k) {
    info.shape.push_back(in.read<std::uint64_t>("the shape of a tensor"));
  }
  std::reverse(info.shape.begin(), info.shape.end());  // GGUF has the fastest dimension first
  const auto type = in.read<std::uint32_t>("the type of a tensor");
  in_context("tensor " + quote(name), [&] { set_type(info, type); });
  info.offset = in.read<std::uint64_t>("the offset of a tensor");
  malformed_if(info.offset % alignment != 0, where, "its offset ", info.offset,
               " is not a multiple of ", alignment);
  return info;
}

// Requires that each tensor ends before the next one begins, and the last one within the data. The
// sizes of tensors in other blocks are unknown.
void require_disjoint(const std::vector<tensor_info>& tensors, std::uint64_t data_bytes) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const tensor_info& info = tensors[i];
    malformed_if(info.offset > data_bytes || stored_bytes(info) > data_bytes - info.offset,
                 "tensor ", quoted{info.name}, ": its data exceeds the file");
    if (i + 1 == tensors.size()) return;
    malformed_if(info.offset + stored_bytes(info) > tensors[i + 1].offset, "tensor ",
                 quoted{info.name}, ": it shares bytes with tensor ", quoted{tensors[i + 1].name});
  }
}

}  // namespace

file_contents parse_gguf(std::span<const std::byte> file) {
  file_cursor in(file);
  const gguf_counts counts = read_start(in);
  const std::uint64_t alignment = read_pairs(in, counts.pairs);
  constexpr std::uint64_t least_bytes = 24;  // of a tensor info
  if (counts.tensors > in.rest() / least_bytes) {
    in.fail("the file has no room for ", counts.tensors, " tensors");
  }
  file_contents contents;
  std::vector<tensor_info>& tensors = contents.tensors;
  std::set<std::string> names;
  for (std::uint64_t i = 0; i < counts.tensors; ++i) {
    tensors.push_back(read_tensor(in, alignment));
    malformed_if(!names.insert(tensors.back().name).second, "tensor ", quoted{tensors.back().name},
                 ": it occurs twice");
  }
  if (tensors.empty()) return contents;

  const std::uint64_t padding = (alignment - in.at() % alignment) % alignment;
  const std::uint64_t data_bytes = in.rest() - std::min(in.rest(), padding);
  std::stable_sort(tensors.begin(), tensors.end(), [](const tensor_info& a, const tensor_info& b) {
    return a.offset != b.offset ? a.offset < b.offset : stored_bytes(a) < stored_bytes(b);
  });
  require_disjoint(tensors, data_bytes);
  const std::uint64_t data_start = file.size() - data_bytes;
  for (tensor_info& info : tensors) info.offset += data_start;
  return contents;
}

}  // namespace samebits::tensor_file
