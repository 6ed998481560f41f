// Arrays between guard bytes: a write outside of an array is detected.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace samebits::testkit {

inline constexpr std::byte guard{0xA5};     ///< content of guards
inline constexpr std::size_t border = 256;  ///< bytes; also the size of each guard

/// Returns the content of an array of `count` elements before a call. An element that is not written
/// is right if its code consists of these bytes; so arrays of odd sizes have others than even ones.
constexpr std::byte fill_of(std::size_t count) { return count % 2 == 0 ? guard : ~guard; }

/// Memory that starts at a 256-byte border: guards, `offset` + `count` elements, guards. The last
/// `count` elements are the array; the elements before the array are guards too.
class guarded_array {
 public:
  guarded_array(std::size_t element_bytes, int offset, std::size_t count)
      : element_bytes_(element_bytes),
        at_(border + static_cast<std::size_t>(offset) * element_bytes),
        bytes_(count * element_bytes),
        memory_(border + at_ + bytes_ + border, guard) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    start_ = static_cast<std::size_t>((border - address % border) % border);
    std::fill_n(elements(), bytes_, fill_of(count));
  }

  [[nodiscard]] std::span<std::byte> memory() {
    return std::span(memory_).subspan(start_, at_ + bytes_ + border);
  }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] std::byte* elements() { return memory().data() + at_; }
  [[nodiscard]] std::vector<std::byte> copy_of_elements() {
    return {elements(), elements() + bytes_};
  }
  [[nodiscard]] bool guards_are_intact() {
    const std::span<std::byte> all = memory();
    const auto is_guard = [](std::byte b) { return b == guard; };
    return std::all_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(at_), is_guard) &&
           std::all_of(all.begin() + static_cast<std::ptrdiff_t>(at_ + bytes_), all.end(),
                       is_guard);
  }

  /// Stores codes as the elements. All supported hosts are little-endian.
  void store(std::span<const std::uint64_t> codes) {
    for (std::size_t i = 0; i < codes.size(); ++i) {
      std::memcpy(elements() + i * element_bytes_, &codes[i], element_bytes_);
    }
  }
  /// Returns the elements as codes.
  [[nodiscard]] std::vector<std::uint64_t> codes() {
    std::vector<std::uint64_t> all(bytes_ / element_bytes_);
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::memcpy(&all[i], elements() + i * element_bytes_, element_bytes_);
    }
    return all;
  }

 private:
  std::size_t element_bytes_;
  std::size_t at_;
  std::size_t bytes_;
  std::vector<std::byte> memory_;
  std::size_t start_ = 0;
};

}  // namespace samebits::testkit
