// Operands and scales of `matmul`, as matrices that the library takes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/tensors/source.hpp"
#include "samebits/core/format.hpp"
#include "samebits/matmul.hpp"
#include "samebits/view.hpp"

namespace fpinspect {

enum class stored : std::uint8_t { as_is, transposed };

/// One operand of a product.
class product_operand {
 public:
  /// `input` holds values, which are rounded to nearest even into `format`, or codes of it.
  /// which   names it in errors
  /// option  names `from`, the format of codes in integers, or empty
  /// Throws as open_source does, and usage_error for other than two dimensions and for fp64.
  product_operand(std::string_view which, const std::string& input, std::string_view option,
                  const std::string& from, samebits::format_id format, stored how);

  [[nodiscard]] const samebits::const_matrix_view& codes() const { return codes_; }
  /// What the codes were rounded from; the codes where they were given.
  [[nodiscard]] const samebits::const_matrix_view& values() const { return values_; }
  [[nodiscard]] bool was_rounded() const { return !rounded_.empty(); }
  /// Whether the elements are integers that are read as values.
  [[nodiscard]] bool holds_integer_values() const { return source_.how.integer_values; }

 private:
  source_tensor source_;
  std::vector<std::byte> read_;
  std::vector<std::byte> rounded_;
  samebits::const_matrix_view values_;
  samebits::const_matrix_view codes_;
};

/// Which operand scales belong to, and with it which of its dimensions is K.
enum class operand_side : std::uint8_t { a, b };

/// Scales of an operand: a number, or a tensor of fp32 whose shape says of which tiles.
class product_scales {
 public:
  /// text: a positive decimal number, a FILE, or empty for none. operand: [M, K] or [K, N]; the
  /// tensor is as the operand is stored. Throws usage_error, naming `option`, and file_error.
  product_scales(std::string_view option, const std::string& text, operand_side side, stored how,
                 const samebits::const_matrix_view& operand);

  [[nodiscard]] const samebits::operand_scales& scales() const { return scales_; }

 private:
  std::vector<float> values_;
  samebits::operand_scales scales_;
};

}  // namespace fpinspect
