// The course of a loss scale as a chart of columns, with the skipped steps below it.
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
  double scale = 0;  ///< in force during it
  bool applied = true;
  samebits::step_cause cause = samebits::step_cause::none;
};

/// Lines of at most the terminal's width, each with a line end; nothing for no rows. A column
/// stands for one step or for equally many, and shows every scale that was in force in it.
std::string scaler_plot(std::span<const scaler_row> rows, const terminal& term);

}  // namespace fpinspect
