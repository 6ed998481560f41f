// The detailed view of `tensor`: what formats do to one tensor, and its exponents as a chart.
#pragma once

#include <span>

#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/output.hpp"
#include "fpinspect/output/terminal.hpp"
#include "fpinspect/tensors/source/selection.hpp"
#include "fpinspect/tensors/tensor_analyser.hpp"
#include "samebits/core/format.hpp"

namespace fpinspect {

/// Writes the detailed views of tensors, and what their words mean at the end.
class details_writer {
 public:
  /// @param formats  the rows of the table; stats.formats must contain them
  details_writer(std::span<const samebits::format_id> formats, const terminal& term, output& out)
      : formats_(formats), term_(term), out_(out) {}

  void write(const shown_tensor& tensor, const tensor_stats& stats);
  void write_legend();

 private:
  std::span<const samebits::format_id> formats_;
  const terminal& term_;
  output& out_;
  bool any_lost_ = false;
  bool any_exact_ = false;
};

}  // namespace fpinspect
