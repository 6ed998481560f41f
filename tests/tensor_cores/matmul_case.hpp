// Random matrix products: shapes, strides, formats, accumulations, scales and C.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "samebits/matmul.hpp"
#include "support/array_generators.hpp"
#include "support/strided_buffer.hpp"
#include "tensor_cores/tensor_cases.hpp"

namespace samebits::support {

struct matmul_sizes {
  int max_rows;
  int max_cols;
  int max_depth;
};

/// The kinds of accumulation that occur.
enum class random_kinds : std::uint8_t { all, tensor_cores };

/// A call with its memory. Everything follows from the seed.
class matmul_case {
 public:
  matmul_case(std::uint64_t seed, const matmul_sizes& sizes, random_kinds kinds);

  /// matmul() into fresh memory with guards around it.
  [[nodiscard]] strided_buffer run(const executor& where) const;

  /// What the case is, in words, with its seed.
  [[nodiscard]] std::string text() const;

  [[nodiscard]] std::int64_t rows() const { return d_layout_.rows; }
  [[nodiscard]] std::int64_t cols() const { return d_layout_.cols; }
  [[nodiscard]] std::int64_t depth() const { return a_layout_.cols; }
  [[nodiscard]] const array_layout& d_layout() const { return d_layout_; }
  [[nodiscard]] format_id a_format() const { return a_format_; }
  [[nodiscard]] format_id b_format() const { return b_format_; }
  [[nodiscard]] format_id d_format() const { return d_format_; }
  [[nodiscard]] const accumulator& sum() const { return sum_; }
  [[nodiscard]] int products() const { return products_; }
  /// The operands' views point into this.
  [[nodiscard]] const strided_buffer& a() const { return buffers_[0]; }
  [[nodiscard]] const strided_buffer& b() const { return buffers_[1]; }
  [[nodiscard]] const matmul_options& options() const { return options_; }
  /// Codes of the scales in fp32 of the tile of an element of A [M, K] or B [K, N]; 1 without any.
  [[nodiscard]] std::uint32_t a_scale(std::int64_t r, std::int64_t c) const;
  [[nodiscard]] std::uint32_t b_scale(std::int64_t r, std::int64_t c) const;
  [[nodiscard]] std::uint32_t c_code(std::int64_t r, std::int64_t c) const;

 private:
  void draw_sum(random_kinds kinds);
  void draw_scales();
  void draw_c();
  array_layout layout(std::int64_t rows, std::int64_t cols, array_side side);
  void add_buffer(format_id format, const array_layout& layout, int mix);
  std::uint64_t draw_code(format_id format, int mix);
  void make_views();
  [[nodiscard]] std::uint32_t scale(const operand_scales& s, std::int64_t r, std::int64_t c) const;

  std::uint64_t seed_;
  word_stream words_;
  format_id a_format_{};
  format_id b_format_{};
  format_id d_format_{};
  accumulator sum_{accumulator_kind::exact};
  int products_ = 0;
  array_layout a_layout_{};
  array_layout b_layout_{};
  array_layout d_layout_{};
  matmul_options options_;
  std::vector<strided_buffer> buffers_;  ///< a, b, then scales and c where there are any
};

}  // namespace samebits::support
