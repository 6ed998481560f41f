// Traces of training runs in CSV, of gradients for `fpinspect scaler` and of loss scales; and loss
// scales as a chart.
#pragma once

#include "fpinspect/common.hpp"
#include "samebits/core/loss_scaling.hpp"

namespace fpinspect {

/// One step of a replayed trace.
struct scaler_row {
  std::int64_t step = 0;
  double scale = 0;  ///< the scale used in this step
  bool applied = true;
  step_cause cause = step_cause::none;
};

inline std::size_t skipped_steps(std::span<const scaler_row> rows) {
  return static_cast<std::size_t>(std::ranges::count(rows, false, &scaler_row::applied));
}

/// Consecutive steps in one column of a picture.
struct trace_column {
  double lowest = 0;  ///< height of the scales
  double highest = 0;
  std::size_t steps = 0;
  std::size_t skipped = 0;
};

/// At most `most` columns of equally many steps, but for the last one.
/// @param height_of  of a scale
std::vector<trace_column> trace_columns(std::span<const scaler_row> rows, std::size_t most,
                                        double (*height_of)(double));

// --- Traces of gradients for `fpinspect scaler`: read from CSV, written, and generated -----------

/// What a trace records for each step.
enum class trace_kind : std::uint8_t {
  open,    ///< whether the gradients were finite, independent of the scale
  closed,  ///< the largest gradient magnitude before scaling
};

/// The record of one step.
struct trace_step {
  std::int64_t step = 0;
  bool nonfinite = false;  ///< for open traces
  double amax = 0;         ///< for closed traces; >= 0, Inf or NaN
  bool loss_nonfinite = false;
};

/// The records of consecutive steps.
struct scaler_trace {
  trace_kind kind = trace_kind::open;
  bool has_loss = false;  ///< whether there is a loss_nonfinite column
  std::vector<trace_step> steps;
  std::vector<std::string> unread_columns;  ///< unknown column names in the header
};

/// Reads CSV with a header. Columns, in any order: step, either nonfinite (0 or 1) or amax, and
/// optionally loss_nonfinite. Other columns are ignored. "-" is standard input.
/// @throws file_error  for invalid text; the message names the line
scaler_trace read_trace(const std::string& path);

/// Generates the trace of a scenario, equal on every machine. For an unknown name, throws
/// usage_error with a list of all names.
scaler_trace generate_trace(std::string_view scenario, std::uint64_t steps, std::uint64_t seed);

/// Whether the seed affects the scenario with this name.
bool is_random_scenario(std::string_view name);

/// Lines "name: description" for all scenarios.
std::string scenario_help();

/// A number in hexadecimal, as traces and results show it.
std::string hexadecimal(double x);
std::string trace_csv(const scaler_trace& trace);

// --- The loss scale of each step of a training run, read from CSV --------------------------------

/// Reads CSV with a header that has the columns step, scale and applied, as `fpinspect scaler`
/// writes it, in any order. Other columns are ignored. "-" is standard input.
/// @returns the steps in the order of the file, at least one; each scale is finite and >= 0; `cause`
///   is not read
/// @throws file_error  for any other text; the message names the line
std::vector<scaler_row> read_scale_trace(const std::string& path);

}  // namespace fpinspect
