// Elements of GGUF files that are stored in blocks: implementation.
#include "tensor_file/gguf/gguf_blocks.hpp"

#include <bit>
#include <cstring>

namespace samebits::tensor_file {
namespace {

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

}  // namespace

std::uint64_t stored_bytes(const tensor_info& info) {
  if (info.blocks == block_layout::none) return info.bytes;
  return info.count / block_elements * block_bytes(info.blocks);
}

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

}  // namespace samebits::tensor_file
