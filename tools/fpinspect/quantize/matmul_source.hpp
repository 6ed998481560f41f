// Operands and scales of `matmul`, as matrices for the library.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/quantize/quantize_source.hpp"
#include "samebits/core/format.hpp"
#include "samebits/matmul.hpp"
#include "samebits/view.hpp"

namespace fpinspect {

/// Whether the file stores the operand as it is or transposed.
enum class file_layout : std::uint8_t { as_is, transposed };

/// One operand of a product.
class product_operand {
 public:
  /// @param which  the operand's name in errors
  /// @param input  values, which are rounded to nearest even to `format`, or codes of `format`
  /// @param option  the name of `from` in errors
  /// @param from  the format of codes that are stored as integers, or empty
  /// @throws usage_error  if the tensor does not have two dimensions, or for fp64
  /// @note Also throws as open_source() does.
  product_operand(std::string_view which, const std::string& input, std::string_view option,
                  const std::string& from, samebits::format_id format, file_layout how);

  [[nodiscard]] const samebits::const_matrix_view& codes() const { return codes_; }
  /// The values from which the codes were rounded; the codes themselves if they were given.
  [[nodiscard]] const samebits::const_matrix_view& values() const { return values_; }
  [[nodiscard]] bool was_rounded() const { return rounded_ && !rounded_->bytes.empty(); }
  /// Whether the elements are integers that are read as values.
  [[nodiscard]] bool holds_integer_values() const { return source_.how.integer_values; }

 private:
  source_tensor source_;
  source_matrix read_;
  std::optional<owned_matrix> rounded_;
  samebits::const_matrix_view values_;
  samebits::const_matrix_view codes_;
};

/// The operand to which scales belong. It determines which dimension is K.
enum class operand_side : std::uint8_t { a, b };

/// Scales of an operand: a number, or an fp32 tensor whose shape determines the tiles.
class product_scales {
 public:
  /// @param text  a positive decimal number, a FILE, or empty for no scales
  /// @param operand  [M, K] or [K, N]; the scale tensor is in the operand's storage order
  /// @throws usage_error  for invalid scales; the message names `option`
  /// @throws file_error  if the file cannot be read
  product_scales(std::string_view option, const std::string& text, operand_side side,
                 file_layout how, const samebits::const_matrix_view& operand);

  [[nodiscard]] const samebits::operand_scales& scales() const { return scales_; }

 private:
  std::vector<float> values_;
  samebits::operand_scales scales_;
};

}  // namespace fpinspect
