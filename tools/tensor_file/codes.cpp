// Element access: implementation.
#include "tensor_file/codes.hpp"

#include <stdexcept>

#include "tensor_file/tensor_size.hpp"

namespace samebits::tensor_file {
namespace {

static_assert(std::endian::native == std::endian::little, "codes are handed out little endian");
static_assert(sizeof(std::size_t) == sizeof(std::uint64_t), "files are mapped whole");

std::uint8_t swapped(std::uint8_t word) { return word; }
std::uint16_t swapped(std::uint16_t word) { return __builtin_bswap16(word); }
std::uint32_t swapped(std::uint32_t word) { return __builtin_bswap32(word); }
std::uint64_t swapped(std::uint64_t word) { return __builtin_bswap64(word); }

// Elements at equal distances.
struct element_segment {
  const std::byte* from;
  std::size_t stride;         // bytes from one element to the next
  std::size_t count;          // elements
  std::size_t element_bytes;  // a multiple of the component's size
};

template <class Word>
std::byte* copy_words(const element_segment& run, byte_order order, std::byte* out) {
  for (std::size_t i = 0; i < run.count; ++i) {
    const std::byte* element = run.from + i * run.stride;
    for (std::size_t at = 0; at < run.element_bytes; at += sizeof(Word)) {
      Word word;
      std::memcpy(&word, element + at, sizeof word);
      if (order == byte_order::big) word = swapped(word);
      std::memcpy(out, &word, sizeof word);
      out += sizeof word;
    }
  }
  return out;
}

std::byte* copy_run(const element_segment& run, int component_bytes, byte_order order,
                    std::byte* out) {
  const bool native = order == byte_order::little || component_bytes == 1;
  if (native && run.stride == run.element_bytes) {
    std::memcpy(out, run.from, run.count * run.element_bytes);
    return out + run.count * run.element_bytes;
  }
  switch (component_bytes) {
    case 1: return copy_words<std::uint8_t>(run, order, out);
    case 2: return copy_words<std::uint16_t>(run, order, out);
    case 4: return copy_words<std::uint32_t>(run, order, out);
    default: return copy_words<std::uint64_t>(run, order, out);
  }
}

void copy_strided(const tensor_info& info, const std::byte* data, std::uint64_t first,
                  std::uint64_t count, std::byte* out) {
  const std::size_t rank = info.shape.size();
  const auto element_bytes = static_cast<std::size_t>(code_bytes(info.type));
  std::array<std::uint64_t, max_rank> index{};
  for (std::size_t k = rank; k-- > 0;) {
    index[k] = first % info.shape[k];
    first /= info.shape[k];
  }
  const std::size_t last = rank - 1;
  while (count > 0) {
    std::uint64_t position = 0;
    for (std::size_t k = 0; k < rank; ++k) position += index[k] * info.strides[k];
    const std::uint64_t n = std::min(count, info.shape[last] - index[last]);
    out = copy_run(
        {data + position * element_bytes, info.strides[last] * element_bytes, n, element_bytes},
        spec_of(info.type).component_bytes, info.bytes_order, out);
    count -= n;
    index[last] = 0;
    for (std::size_t k = last; k-- > 0;) {
      if (++index[k] < info.shape[k]) break;
      index[k] = 0;
    }
  }
}

// Unpacks elements of less than a byte. Element i is bits [i * bits, (i + 1) * bits) of the bytes,
// read as a little-endian bit stream.
void unpack(const std::byte* data, unsigned bits, std::uint64_t first, std::uint64_t count,
            std::byte* out) {
  const unsigned mask = (1u << bits) - 1;
  for (std::uint64_t i = first; i < first + count; ++i) {
    const std::byte* from = data + i * bits / 8;
    const auto shift = static_cast<unsigned>(i * bits % 8);
    auto word = std::to_integer<unsigned>(from[0]);
    if (shift + bits > 8) word |= std::to_integer<unsigned>(from[1]) << 8;
    *out++ = static_cast<std::byte>(word >> shift & mask);
  }
}

// --- Blocks of GGUF files ------------------------------------------------------------------------

constexpr std::uint64_t scale_bytes = 2;

std::uint64_t block_bytes(block_layout blocks) {
  return scale_bytes + (blocks == block_layout::q8_0 ? block_elements : block_elements / 2);
}

float from_fp16(std::uint16_t code) {
  const std::uint32_t sign = (code & 0x8000u) << 16;
  const std::uint32_t exponent = code >> 10 & 31u;
  const std::uint32_t fraction = code & 1023u;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t biased = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | biased << 23 | fraction << 13);
}

int integer_at(block_layout blocks, const std::byte* integers, std::uint64_t i) {
  if (blocks == block_layout::q8_0) return static_cast<std::int8_t>(integers[i]);
  constexpr std::uint64_t half = block_elements / 2;
  const auto byte = std::to_integer<int>(integers[i % half]);
  return (i < half ? byte & 15 : byte >> 4) - 8;
}

// Writes elements in fp32, which holds every product exactly.
void read_blocks(block_layout blocks, const std::byte* data, std::uint64_t first,
                 std::uint64_t count, std::byte* out) {
  for (std::uint64_t i = first; i < first + count; ++i) {
    const std::byte* const block = data + i / block_elements * block_bytes(blocks);
    std::uint16_t scale = 0;
    std::memcpy(&scale, block, sizeof scale);
    const int integer = integer_at(blocks, block + scale_bytes, i % block_elements);
    const float element = static_cast<float>(integer) * from_fp16(scale);
    std::memcpy(out, &element, sizeof element);
    out += sizeof element;
  }
}

// --- Checks --------------------------------------------------------------------------------------

// A tensor_info that was not written by a parser may contradict itself. Refuses it, so that no byte
// outside the tensor is accessed.
void require_consistent(const tensor_info& info) {
  if (info.shape.size() > max_rank) throw std::out_of_range("info.shape must have rank <= 64");
  const tensor_size size = size_of(info.type, info.shape);
  if (size.count != info.count || size.bytes != info.bytes) {
    throw std::out_of_range("info.count and info.bytes must agree with info.shape and info.type");
  }
  if (info.blocks != block_layout::none &&
      (info.type != dtype::f32 || info.count % block_elements != 0 || !info.strides.empty())) {
    throw std::out_of_range("info.blocks must be none but for whole blocks of fp32 elements");
  }
  if (info.strides.empty()) return;
  if (spec_of(info.type).bits < 8) {
    throw std::out_of_range("info.strides must be empty for packed elements");
  }
  if (info.strides.size() != info.shape.size()) {
    throw std::out_of_range("info.strides must have the rank of info.shape");
  }
}

// Bytes from the first element in the file to the end of the last one.
unsigned __int128 extent_of(const tensor_info& info) {
  if (info.strides.empty() || info.count == 0) return stored_bytes(info);
  unsigned __int128 elements = 1;
  for (std::size_t k = 0; k < info.shape.size(); ++k) {
    elements += static_cast<unsigned __int128>(info.shape[k] - 1) * info.strides[k];
    if (elements >> 64 != 0) return ~static_cast<unsigned __int128>(0);
  }
  return elements * static_cast<unsigned>(code_bytes(info.type));
}

}  // namespace

std::uint64_t stored_bytes(const tensor_info& info) {
  if (info.blocks == block_layout::none) return info.bytes;
  return info.count / block_elements * block_bytes(info.blocks);
}

std::span<const std::byte> data_bytes(std::span<const std::byte> file, const tensor_info& info) {
  require_consistent(info);
  const unsigned __int128 extent = extent_of(info);
  if (info.offset > file.size() || extent > file.size() - info.offset) {
    throw std::out_of_range("data_bytes: info must describe a tensor of this file");
  }
  return file.subspan(info.offset, static_cast<std::size_t>(extent));
}

void read_codes(std::span<const std::byte> file, const tensor_info& info, std::uint64_t first,
                std::uint64_t count, std::byte* out) {
  if (first > info.count || count > info.count - first) {
    throw std::out_of_range("read_codes: first and count must stay within the tensor");
  }
  const std::byte* data = data_bytes(file, info).data();
  if (count == 0) return;
  const dtype_spec spec = spec_of(info.type);
  if (info.blocks != block_layout::none) {
    read_blocks(info.blocks, data, first, count, out);
  } else if (spec.bits < 8) {
    unpack(data, static_cast<unsigned>(spec.bits), first, count, out);
  } else if (info.strides.empty()) {
    const auto element_bytes = static_cast<std::size_t>(code_bytes(info.type));
    copy_run({data + first * element_bytes, element_bytes, count, element_bytes},
             spec.component_bytes, info.bytes_order, out);
  } else {
    copy_strided(info, data, first, count, out);
  }
}

std::optional<std::span<const std::byte>> view_codes(std::span<const std::byte> file,
                                                     const tensor_info& info) {
  const std::span<const std::byte> data = data_bytes(file, info);
  const dtype_spec spec = spec_of(info.type);
  const bool native = info.bytes_order == byte_order::little || spec.component_bytes == 1;
  const auto address = reinterpret_cast<std::uintptr_t>(data.data());
  const bool aligned = address % static_cast<std::uintptr_t>(spec.component_bytes) == 0;
  const bool plain = info.strides.empty() && info.blocks == block_layout::none;
  if (spec.bits < 8 || !native || !aligned || !plain) return std::nullopt;
  return data;
}

std::vector<std::byte> pack_codes(dtype type, std::span<const std::byte> codes) {
  const auto bits = static_cast<unsigned>(spec_of(type).bits);
  if (bits >= 8) return {codes.begin(), codes.end()};
  const std::uint64_t count[] = {codes.size()};
  std::vector<std::byte> packed(size_of(type, count).bytes);
  const unsigned mask = (1u << bits) - 1;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto shift = static_cast<unsigned>(i * bits % 8);
    const unsigned word = (std::to_integer<unsigned>(codes[i]) & mask) << shift;
    std::byte* to = packed.data() + i * bits / 8;
    to[0] |= static_cast<std::byte>(word & 0xff);
    if (shift + bits > 8) to[1] |= static_cast<std::byte>(word >> 8);
  }
  return packed;
}

}  // namespace samebits::tensor_file
