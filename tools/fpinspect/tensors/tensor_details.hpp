// The detailed view of `tensor`: what formats do to one tensor, and its exponents as a chart.
#pragma once

#include <optional>
#include <span>

#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/output.hpp"
#include "fpinspect/output/terminal.hpp"
#include "fpinspect/tensors/element_statistics.hpp"
#include "fpinspect/tensors/source/selection.hpp"
#include "fpinspect/verdict/roles.hpp"
#include "samebits/core/format.hpp"

namespace fpinspect {

/// Writes the detailed views of tensors, and what their words mean at the end.
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
