// Arrays between guard bytes: a write outside of an array is detected.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "samebits/core/format.hpp"

namespace samebits::testkit {

inline constexpr std::size_t guard_size =
    256;  ///< bytes before and behind; blocks start at borders of as many

/// The content of guards, and of an array of `count` elements before a call. What is not written, or
/// written outside, is right if it consists of these bytes; so odd sizes have others than even ones.
constexpr std::byte fill_of(std::size_t count) {
  return count % 2 == 0 ? std::byte{0xA5} : std::byte{0x5A};
}

/// The code of an element of such an array that is not written.
inline std::uint64_t unwritten_code(std::size_t count, format_id format) {
  return std::to_integer<std::uint64_t>(fill_of(count)) * 0x0101010101010101u >>
         (64 - spec_of(format).storage_bits);
}

/// Memory that starts at a 256-byte border: guards, `offset` + `count` elements, guards. The last
/// `count` elements are the array; the elements before the array are guards too.
class guarded_array {
 public:
  guarded_array(std::size_t element_bytes, int offset, std::size_t count)
      : element_bytes_(element_bytes),
        at_(guard_size + static_cast<std::size_t>(offset) * element_bytes),
        bytes_(count * element_bytes),
        fill_(fill_of(count)),
        memory_(guard_size + at_ + bytes_ + guard_size, fill_) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    start_ = static_cast<std::size_t>((guard_size - address % guard_size) % guard_size);
  }

  [[nodiscard]] std::span<std::byte> memory() {
    return std::span(memory_).subspan(start_, at_ + bytes_ + guard_size);
  }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] std::byte* elements() { return memory().data() + at_; }
  [[nodiscard]] std::size_t size() const { return bytes_ / element_bytes_; }
  /// Whether the elements of another array of this kind are the same.
  [[nodiscard]] bool has_elements_of(guarded_array& other) {
    return bytes_ == other.bytes_ &&
           (bytes_ == 0 || std::memcmp(elements(), other.elements(), bytes_) == 0);
  }
  [[nodiscard]] bool guards_are_intact() {
    const std::span<std::byte> all = memory();
    const auto is_guard = [this](std::byte b) { return b == fill_; };
    return std::all_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(at_), is_guard) &&
           std::all_of(all.begin() + static_cast<std::ptrdiff_t>(at_ + bytes_), all.end(),
                       is_guard);
  }

  /// Stores codes as the elements. All supported hosts are little-endian.
  void store(std::span<const std::uint64_t> codes) {
    std::byte* const first = elements();
    with_width([&](auto width) {
      for (std::size_t i = 0; i < codes.size(); ++i) {
        std::memcpy(first + i * width, &codes[i], width);
      }
    });
  }
  /// Returns the elements as codes.
  [[nodiscard]] std::vector<std::uint64_t> codes() {
    std::vector<std::uint64_t> all(size());
    const std::byte* const first = elements();
    with_width([&](auto width) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        std::memcpy(&all[i], first + i * width, width);
      }
    });
    return all;
  }

 private:
  /// Calls f with the bytes of an element as a constant, for which the compiler copies words.
  template <class Function>
  void with_width(const Function& f) const {
    switch (element_bytes_) {
      case 1: return f(std::integral_constant<std::size_t, 1>{});
      case 2: return f(std::integral_constant<std::size_t, 2>{});
      case 4: return f(std::integral_constant<std::size_t, 4>{});
      default: return f(std::integral_constant<std::size_t, 8>{});
    }
  }

  std::size_t element_bytes_;
  std::size_t at_;
  std::size_t bytes_;
  std::byte fill_;
  std::vector<std::byte> memory_;
  std::size_t start_ = 0;
};

}  // namespace samebits::testkit
