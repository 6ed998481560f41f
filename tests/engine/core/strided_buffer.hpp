// Memory of a matrix view under test: any strides and alignment, guard bytes everywhere else.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "engine/core/layout.hpp"
#include "samebits/core/format.hpp"
#include "samebits/view.hpp"

namespace samebits::support {

/// Bytes that hold a matrix, with guards before, behind and between the elements.
class strided_buffer {
 public:
  static constexpr std::byte guard{0xA5};
  static constexpr std::size_t margin = 64;  ///< guard bytes on either side

  strided_buffer(format_id format, const array_layout& layout)
      : format_(format),
        layout_(layout),
        bytes_(2 * margin + 8 + static_cast<std::size_t>(layout.span()) * width(), guard) {}

  [[nodiscard]] matrix_view view() {
    return {first(),
            format_,
            layout_.rows,
            layout_.cols,
            layout_.row_stride,
            layout_.col_stride,
            memory_space::host};
  }

  /// The element numbered in memory order from the first one; it need not belong to the matrix.
  [[nodiscard]] std::uint64_t load(std::int64_t element) const {
    std::uint64_t code = 0;
    std::memcpy(&code, bytes_.data() + offset(element), width());
    return code;
  }
  void store(std::int64_t element, std::uint64_t code) {
    std::memcpy(bytes_.data() + offset(element), &code, width());
  }

  [[nodiscard]] std::uint64_t at(std::int64_t row, std::int64_t col) const {
    return load(layout_.at(row, col));
  }
  [[nodiscard]] const array_layout& layout() const { return layout_; }
  [[nodiscard]] format_id format() const { return format_; }

  /// Other bytes around the elements; `inside` too instead of the elements and their gaps.
  void fill(std::byte value, bool inside) {
    const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(offset(0));
    const auto end = begin + layout_.span() * static_cast<std::int64_t>(width());
    std::fill(bytes_.begin(), inside ? end : begin, value);
    std::fill(end, bytes_.end(), value);
  }

  /// True if every byte outside the matrix is still a guard, in a buffer that was not filled.
  [[nodiscard]] bool guards_are_intact() const {
    std::vector<bool> belongs(bytes_.size(), false);
    for (std::int64_t r = 0; r < layout_.rows; ++r) {
      for (std::int64_t c = 0; c < layout_.cols; ++c) {
        const std::size_t at = offset(r * layout_.row_stride + c * layout_.col_stride);
        for (std::size_t i = 0; i < width(); ++i) belongs[at + i] = true;
      }
    }
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      if (!belongs[i] && bytes_[i] != guard) return false;
    }
    return true;
  }

  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }

 private:
  [[nodiscard]] std::size_t width() const {
    return static_cast<std::size_t>(storage_bytes(format_));
  }
  [[nodiscard]] std::size_t offset(std::int64_t element) const {
    return margin + misaligned() + static_cast<std::size_t>(element) * width();
  }
  [[nodiscard]] std::size_t misaligned() const {
    return static_cast<std::size_t>(layout_.misalignment);
  }
  [[nodiscard]] std::byte* first() { return bytes_.data() + offset(0); }

  format_id format_;
  array_layout layout_;
  std::vector<std::byte> bytes_;
};

}  // namespace samebits::support
