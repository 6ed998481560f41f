// Attention on host backends: the operands of one head in the layout of the kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "backends/dispatch/calls/attention.hpp"

namespace samebits::backends {

/// Words that begin at a multiple of 64 bytes.
class aligned_words {
 public:
  explicit aligned_words(std::int64_t count)
      : words_(static_cast<std::size_t>(count) + 16),
        first_((64 - reinterpret_cast<std::uintptr_t>(words_.data()) % 64) % 64 / 4) {}
  [[nodiscard]] std::uint32_t* data() { return words_.data() + first_; }
  std::uint32_t& operator[](std::int64_t i) { return data()[i]; }

 private:
  std::vector<std::uint32_t> words_;
  std::size_t first_;
};

/// The smallest multiple of a tensor core step that is not below n.
constexpr std::int64_t whole_steps(std::int64_t n) {
  return (n + attention_step - 1) / attention_step * attention_step;
}
constexpr std::int64_t parts_of(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }

/// One head of a tensor of 16-bit codes, or of binary32 numbers.
class head_matrix {
 public:
  head_matrix(const head_tensor& t, const attention_plan& p, std::int64_t head)
      : data_(t.data), row_(t.strides[2]), column_(t.strides[3]) {
    if (data_ != nullptr) data_ += head / p.heads * t.strides[0] + head % p.heads * t.strides[1];
  }
  [[nodiscard]] bool is_wanted() const { return data_ != nullptr; }
  template <class Code = std::uint16_t>
  [[nodiscard]] std::uint32_t load(std::int64_t row, std::int64_t column = 0) const {
    Code code;
    std::memcpy(&code, data_ + row * row_ + column * column_, sizeof code);
    return code;
  }
  template <class Code = std::uint16_t>
  void store(std::int64_t row, std::int64_t column, std::uint32_t word) const {
    const auto code = static_cast<Code>(word);
    std::memcpy(data_ + row * row_ + column * column_, &code, sizeof code);
  }

 private:
  std::byte* data_;
  std::int64_t row_, column_;
};

/// Packs and multiplies by the kernels of a backend.
class attention_packer {
 public:
  attention_packer(const attention_kernels& kernels, format_id format)
      : kernels_(kernels), format_(format) {}

  /// Packs A [rows, depth]; code(i, k) is the element of row i at depth k. Rows and depths beyond
  /// are zeros, up to whole steps.
  template <class Code>
  void pack_a(std::int64_t rows, std::int64_t all_rows, std::int64_t depth, const Code& code,
              std::uint32_t* words) {
    for (std::int64_t k = 0; k < depth; k += attention_step) {
      for (std::int64_t i = 0; i < all_rows; ++i, words += kernels_.a_words) {
        gather(k, i < rows ? depth : 0, [&](std::int64_t at) { return code(i, at); });
        special_ = kernels_.pack_a(format_, codes_, words) || special_;
      }
    }
  }
  /// Packs B [depth, columns], code(k, j); columns beyond are zeros.
  template <class Code>
  void pack_b(std::int64_t columns, std::int64_t depth, const Code& code, std::uint32_t* words) {
    for (std::int64_t k = 0; k < depth; k += attention_step, words += kernels_.b_words) {
      for (int j = 0; j < kernels_.columns; ++j) {
        gather(k, j < columns ? depth : 0, [&](std::int64_t at) { return code(at, j); });
        special_ = kernels_.pack_b(format_, codes_, words, j) || special_;
      }
    }
  }
  /// sums [rows][columns] += A B over whole steps of depth
  void multiply(const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* sums,
                std::int64_t rows, std::int64_t depth) const {
    for (std::int64_t k = 0; k < depth; k += attention_step) {
      kernels_.multiply({format_, a, b, sums, rows});
      a += rows * kernels_.a_words;
      b += kernels_.b_words;
    }
  }
  void see(bool special) { special_ = special_ || special; }
  /// Whether a number was packed that the kernels do not multiply.
  [[nodiscard]] bool has_special() const { return special_; }
  [[nodiscard]] std::int64_t a_size(std::int64_t rows, std::int64_t depth) const {
    return rows * whole_steps(depth) / attention_step * kernels_.a_words;
  }
  [[nodiscard]] std::int64_t b_size(std::int64_t depth) const {
    return whole_steps(depth) / attention_step * kernels_.b_words;
  }

 private:
  template <class At>
  void gather(std::int64_t k, std::int64_t depth, const At& at) {
    for (int p = 0; p < attention_step; ++p) codes_[p] = k + p < depth ? at(k + p) : 0;
  }

  const attention_kernels& kernels_;
  format_id format_;
  std::uint32_t codes_[attention_step] = {};
  bool special_ = false;
};

extern const attention_kernels reference_attention_kernels;

/// One head, forward or backward. Returns whether the kernels could compute it.
bool attention_head(const attention_call& call, const attention_kernels& kernels,
                    std::int64_t head);
bool attention_backward_head(const attention_call& call, const attention_kernels& kernels,
                             std::int64_t head);

}  // namespace samebits::backends
