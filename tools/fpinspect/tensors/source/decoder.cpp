// Decodes codes to exact values: implementation.
#include "fpinspect/tensors/source/decoder.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

#include "samebits/scalar.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;

constexpr int widest_table_code = 16;  // bits

template <class Word>
Word load(const std::byte* from) {
  Word word{};
  std::memcpy(&word, from, sizeof word);
  return word;
}

template <class Code>
void look_up(const std::byte* codes, const std::vector<double>& table, std::span<double> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = table[load<Code>(codes + i * sizeof(Code))];
  }
}

void widen(const std::byte* codes, std::uint32_t significant, std::span<double> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint32_t code = load<std::uint32_t>(codes + i * sizeof code) & significant;
    out[i] = static_cast<double>(std::bit_cast<float>(code));
  }
}

}  // namespace

decoder::decoder(format_id format) : format_(format) {
  const int bits = samebits::spec_of(format).storage_bits;
  if (bits > widest_table_code) return;
  for (std::uint64_t code = 0; code < std::uint64_t{1} << bits; ++code) {
    table_.push_back(samebits::decode_double(format, code));
  }
}

void decoder::decode(const std::byte* codes, std::span<double> out) const {
  switch (samebits::storage_bytes(format_)) {
    case 1: return look_up<std::uint8_t>(codes, table_, out);
    case 2: return look_up<std::uint16_t>(codes, table_, out);
    case 4: {
      const int padding = samebits::spec_of(format_).padding_bits;
      return widen(codes, ~std::uint32_t{0} << padding, out);
    }
    default:
      if (!out.empty()) std::memcpy(out.data(), codes, out.size_bytes());
  }
}

}  // namespace fpinspect
