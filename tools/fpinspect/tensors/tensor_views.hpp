// The views of `tensor` besides the verdict: --quick, --stats, --recipes, and one tensor in detail.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "fpinspect/cli/command.hpp"
#include "fpinspect/tensors/source/selection.hpp"
#include "fpinspect/verdict/gate/gate.hpp"
#include "fpinspect/verdict/roles.hpp"
#include "samebits/backend.hpp"
#include "samebits/core/format.hpp"

namespace fpinspect {

/// The members name, from, shape and count.
json_object tensor_json(const shown_tensor& tensor);

/// Writes a line for each tensor, or JSON.
/// @param names  of the tensors in text
/// @param conditions  on `nan` and `inf`
void write_quick_statistics(const std::vector<shown_tensor>& tensors,
                            std::span<const std::string> names, gate& conditions,
                            const samebits::executor& where, const session& s);

/// Writes moments, norms, percentiles, the amax of rows and columns, and the range of the scales
/// that tiled recipes give. Scales are for matrices of fp32, fp16, bf16 and integers of up to 16
/// bits.
void write_tensor_statistics(std::span<const shown_tensor> tensors, const samebits::executor& where,
                             const session& s);

/// Quantizes each tensor to e4m3 by each preset, and writes SQNR, underflow and saturation. Scales
/// are computed from the tensor itself. Notes the figures for the conditions; tensors that cannot be
/// quantized fail.
/// @param names  of the tensors in text
void write_tensor_recipes(std::span<const shown_tensor> tensors, std::span<const std::string> names,
                          gate& conditions, const samebits::executor& where, const session& s);

/// The members of a tensor in the document of the verdict. stats.casts must contain the formats.
json_object details_json(const shown_tensor& tensor, const samebits::cast_statistics& stats,
                         std::span<const samebits::format_id> formats);

/// Writes the detailed views of tensors: what formats do to one tensor, and its exponents as a
/// chart; and what their words mean at the end.
class details_writer {
 public:
  /// @param formats  the rows of the table; stats.casts must contain them
  /// @param scale_log2  the effects in the statistics are those on the elements times 2^this
  details_writer(std::span<const samebits::format_id> formats, std::optional<int> scale_log2,
                 const terminal& term, output& out)
      : formats_(formats), scale_log2_(scale_log2), term_(term), out_(out) {}

  /// @param what  gradients have loss scales
  void write(const shown_tensor& tensor, const samebits::cast_statistics& stats, role what);
  void write_legend();

 private:
  std::span<const samebits::format_id> formats_;
  std::optional<int> scale_log2_;
  const terminal& term_;
  output& out_;
  bool any_lost_ = false;
  bool any_exact_ = false;
  bool any_loss_scale_ = false;
  bool fp32_would_serve_ = false;  ///< a loss scale is above what loss scalers usually reach
};

}  // namespace fpinspect
