// Little-endian integers at any position of a file.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace samebits::tensor_file {

/// The integer at `at`. The caller has checked that all its bytes are in the file.
template <std::unsigned_integral Word>
Word little_endian(std::span<const std::byte> file, std::uint64_t at) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < sizeof(Word); ++i) {
    word |= std::to_integer<std::uint64_t>(file[at + i]) << (8 * i);
  }
  return static_cast<Word>(word);
}

}  // namespace samebits::tensor_file
