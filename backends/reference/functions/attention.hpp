// Attention on host backends: the operands of one head in the layout of the kernels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/dispatch/calls/attention.hpp"
#include "backends/reference/functions/function_range.hpp"

namespace samebits::backends {

/// Words that begin at a multiple of 64 bytes.
class aligned_words {
 public:
  explicit aligned_words(std::int64_t count)
      : words_(static_cast<std::size_t>(count) + 16),
        first_((64 - reinterpret_cast<std::uintptr_t>(words_.data()) % 64) % 64 / 4) {}
  [[nodiscard]] std::uint32_t* data() { return words_.data() + first_; }
  std::uint32_t& operator[](std::int64_t i) { return data()[i]; }
  void clear() { std::fill(words_.begin(), words_.end(), 0u); }

 private:
  std::vector<std::uint32_t> words_;
  std::size_t first_;
};

/// The smallest multiple of a tensor core step that is not below n.
constexpr std::int64_t whole_steps(std::int64_t n) {
  return (n + attention_step - 1) / attention_step * attention_step;
}

/// Rows [first, first + count) of a matrix, as many as it has.
inline const_matrix_view rows_from(const const_matrix_view& v, std::int64_t first,
                                   std::int64_t count) {
  return part_of(v, first, 0, std::min(count, v.rows - first), v.cols);
}

/// One head of a call, whose operands it packs and multiplies by the kernels of a backend.
class attention_head {
 protected:
  attention_head(const attention_call& call, const attention_kernels& kernels, std::int64_t head)
      : p_(call.plan),
        kernels_(kernels),
        columns_(kernels.columns),
        q_(head_of(call.q, head)),
        k_(head_of(call.k, head)),
        v_(head_of(call.v, head)),
        out_(head_of(call.out, head)),
        lse_(head_of(call.lse, head)) {}

  /// Packs A [rows, depth]. Rows and depths beyond are zeros, up to whole steps.
  void pack_a(const const_matrix_view& a, std::uint32_t* words) {
    for (std::int64_t k = 0; k < a.cols; k += attention_step) {
      for (std::int64_t row = 0; row < whole_steps(a.rows); ++row, words += kernels_.a_words) {
        load_step(a, row, k);
        see(kernels_.pack_a(p_.format, codes_, words));
      }
    }
  }
  /// Packs B, given as its transpose [columns, depth]; columns beyond are zeros.
  void pack_b(const const_matrix_view& b, std::uint32_t* words) {
    for (std::int64_t k = 0; k < b.cols; k += attention_step, words += kernels_.b_words) {
      for (int column = 0; column < columns_; ++column) {
        load_step(b, column, k);
        see(kernels_.pack_b(p_.format, codes_, words, column));
      }
    }
  }
  /// sums [rows][columns] += A B over whole steps of depth
  void multiply(const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* sums,
                std::int64_t rows, std::int64_t depth) const {
    for (std::int64_t k = 0; k < depth; k += attention_step) {
      kernels_.multiply({p_.format, a, b, sums, rows});
      a += rows * kernels_.a_words;
      b += kernels_.b_words;
    }
  }
  [[nodiscard]] std::int64_t a_size(std::int64_t rows, std::int64_t depth) const {
    return whole_steps(rows) * whole_steps(depth) / attention_step * kernels_.a_words;
  }
  [[nodiscard]] std::int64_t b_size(std::int64_t depth) const {
    return whole_steps(depth) / attention_step * kernels_.b_words;
  }
  void see(bool special) { special_ = special_ || special; }
  /// Whether a number was seen that the kernels do not multiply.
  [[nodiscard]] bool has_special() const { return special_; }

  const numerics::torch_2_11::attention_plan& p_;
  const attention_kernels& kernels_;
  const std::int64_t columns_;
  const_matrix_view q_, k_, v_, out_, lse_;

 private:
  /// The codes of one step of a row; zeros beyond the matrix.
  void load_step(const const_matrix_view& v, std::int64_t row, std::int64_t k) {
    const std::int64_t count =
        row < v.rows ? std::min<std::int64_t>(attention_step, v.cols - k) : 0;
    if (count > 0) load_words(v, row, k, count, codes_);
    std::fill(codes_ + count, codes_ + attention_step, 0u);
  }

  std::uint32_t codes_[attention_step] = {};
  bool special_ = false;
};

extern const attention_kernels reference_attention_kernels;

/// One head, forward or backward. Returns whether the kernels could compute it.
bool attention_forward_head(const attention_call& call, const attention_kernels& kernels,
                            std::int64_t head);
bool attention_backward_head(const attention_call& call, const attention_kernels& kernels,
                             std::int64_t head);

}  // namespace samebits::backends
