// Mutator for fuzz_safetensors: a random change, then often a repair.
//
// A blind change of the text leaves the length of the header or of the data wrong, and nothing else
// is tried.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

// The largest second number of the pairs in "data_offsets"; capped, since the file must stay small.
std::size_t largest_end(std::string_view text) {
  constexpr std::size_t cap = 4096;
  std::size_t largest = 0;
  constexpr std::string_view key = "\"data_offsets\":[";
  for (std::size_t at = text.find(key); at < text.size(); at = text.find(key, at + 1)) {
    std::size_t from = text.find(',', at);
    if (from == std::string_view::npos) break;
    std::size_t value = 0;
    while (++from < text.size() && text[from] >= '0' && text[from] <= '9' && value < cap) {
      value = value * 10 + static_cast<std::size_t>(text[from] - '0');
    }
    largest = std::max(largest, value);
  }
  return std::min(largest, cap);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::size_t end = text.rfind('}');
  if (end == std::string_view::npos || end < 8 || seed % 4 == 0) return size;
  while (end + 1 < size && data[end + 1] == ' ') ++end;
  const std::size_t length = end + 1 - 8;
  for (std::size_t i = 0; i < 8; ++i) data[i] = static_cast<std::uint8_t>(length >> (8 * i));
  if (seed % 4 == 1) return size;

  const std::size_t wanted = end + 1 + largest_end(text);
  if (wanted > max_size) return size;
  if (wanted > size) std::memset(data + size, static_cast<int>(seed >> 8 & 0xff), wanted - size);
  return wanted;
}
