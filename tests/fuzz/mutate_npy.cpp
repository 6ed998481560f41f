// Mutator for fuzz_npy: a random change, then often a repair.
//
// A blind change of the text leaves the length of the header wrong, and nothing else is tried.
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t brace = text.rfind('}');
  const std::size_t end = text.find('\n', brace == std::string_view::npos ? size : brace);
  const std::size_t start = size > 6 && data[6] > 1 ? 12 : 10;
  const bool repair = seed % 4 != 0;
  if (!repair || end == std::string_view::npos || end < start) return size;
  const std::size_t length = end + 1 - start;
  for (std::size_t i = 8; i < start; ++i) {
    data[i] = static_cast<std::uint8_t>(length >> (8 * (i - 8)));
  }
  return size;
}
