// Traces of gradients for `fpinspect scaler`: read from CSV, written, and generated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fpinspect {

/// What a trace says of each step.
enum class trace_kind : std::uint8_t {
  open,    ///< whether the gradients were finite, whatever the scale is
  closed,  ///< how large the largest was before scaling
};

struct trace_step {
  std::int64_t step = 0;
  bool nonfinite = false;  ///< open
  double amax = 0;         ///< closed; >= 0, Inf or NaN
  bool loss_nonfinite = false;
};

struct scaler_trace {
  trace_kind kind = trace_kind::open;
  bool has_loss = false;  ///< whether there is a column loss_nonfinite
  std::vector<trace_step> steps;
  std::vector<std::string> unread_columns;  ///< names in the header that mean nothing here
};

/// Reads CSV with a header: step, either nonfinite (0 or 1) or amax, and optionally loss_nonfinite,
/// in any order; other columns are passed over. "-" is standard input. Throws file_error naming the
/// line.
scaler_trace read_trace(const std::string& path);

/// One of the scenarios, whose names throw usage_error lists otherwise. The same on every machine.
scaler_trace generate_trace(std::string_view scenario, std::uint64_t steps, std::uint64_t seed);

/// Whether the seed of the scenario of that name matters.
bool is_random_scenario(std::string_view name);

/// "name: what it is" lines.
std::string scenario_help();

std::string trace_csv(const scaler_trace& trace);

}  // namespace fpinspect
