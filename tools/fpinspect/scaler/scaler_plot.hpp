// A loss scale over time as a column chart, with the skipped steps below it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "fpinspect/output/terminal.hpp"
#include "samebits/core/loss_scaling.hpp"

namespace fpinspect {

/// One step of a replayed trace.
struct scaler_row {
  std::int64_t step = 0;
  double scale = 0;  ///< the scale used in this step
  bool applied = true;
  samebits::step_cause cause = samebits::step_cause::none;
};

/// The chart as text. Each line is at most as wide as the terminal and ends with a newline. Empty
/// if there are no rows. Each column covers one step or an equal number of steps, and shows every
/// scale used in them.
std::string scaler_plot(std::span<const scaler_row> rows, const terminal& term);

}  // namespace fpinspect
