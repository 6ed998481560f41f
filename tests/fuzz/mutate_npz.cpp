// Mutator for fuzz_npz and fuzz_torch: a random change, then often a repair of the archive.
//
// A blind change of the size leaves every offset wrong, and nothing else is tried.
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace std::string_view_literals;

constexpr std::size_t none = std::string_view::npos;

void put(std::uint8_t* at, std::size_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) at[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

std::size_t get(const std::uint8_t* at) { return at[0] | static_cast<std::size_t>(at[1]) << 8; }

// Points each directory entry at the local header of the same number and gives it the size of the
// data up to the next header. Stored members also get this size before compression.
void repair_entries(std::uint8_t* data, std::string_view text, std::size_t directory) {
  std::size_t local = text.find("PK\x03\x04"sv);
  std::size_t entry = directory;
  while (local < directory && entry != none && entry + 46 <= text.size()) {
    const std::size_t next = text.find("PK\x03\x04"sv, local + 4);
    const std::size_t end = next < directory ? next : directory;
    if (local + 30 > end) return;
    const std::size_t start = local + 30 + get(data + local + 26) + get(data + local + 28);
    if (start > end) return;
    put(data + entry + 42, local, 4);
    put(data + entry + 20, end - start, 4);
    if (data[entry + 10] == 0) put(data + entry + 24, end - start, 4);
    local = next;
    entry = text.find("PK\x01\x02"sv, entry + 4);
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t directory = text.find("PK\x01\x02"sv);
  const std::size_t end = text.rfind("PK\x05\x06"sv);
  const bool repair = seed % 4 != 0;
  if (!repair || directory == none || end == none || end < directory || end + 22 > size) {
    return size;
  }
  put(data + end + 12, end - directory, 4);
  put(data + end + 16, directory, 4);
  put(data + end + 20, size - end - 22, 2);
  if (seed % 4 != 1) repair_entries(data, text, directory);
  return size;
}
