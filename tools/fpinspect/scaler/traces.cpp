// Traces of training runs in CSV: of gradients, for `fpinspect scaler`, and of loss scales.
#include "fpinspect/scaler/traces.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/files.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "samebits/core/format.hpp"
#include "samebits/scalar.hpp"
#include "samebits/text.hpp"
#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {

// --- CSV text of traces ---------------------------------------------------------------------------

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

}  // namespace

std::vector<std::string_view> csv_cells(std::string_view line) {
  std::vector<std::string_view> all;
  while (true) {
    const std::size_t comma = line.find(',');
    all.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return all;
    line.remove_prefix(comma + 1);
  }
}

std::optional<std::string_view> csv_reader::next() {
  while (!rest_.empty()) {
    const std::size_t end = rest_.find('\n');
    const std::string_view line = trimmed(rest_.substr(0, end));
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    ++number_;
    if (!line.empty()) return line;
  }
  return std::nullopt;
}

void csv_reader::refuse(const std::string& why) const {
  throw samebits::tensor_file::file_error(
      samebits::tensor_file::error_kind::malformed,
      cat(samebits::tensor_file::escape_path(path_), ", line ", number_, ": ", why));
}

bool flag_cell(const csv_reader& file, std::string_view column, std::string_view text) {
  if (text == "1" || text == "true" || text == "True") return true;
  if (text != "0" && text != "false" && text != "False") {
    file.refuse(cat(column, ": ", samebits::tensor_file::quote(text), " is not 0 or 1"));
  }
  return false;
}

std::int64_t integer_cell(const csv_reader& file, std::string_view column, std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    file.refuse(cat(column, ": ", samebits::tensor_file::quote(text), " is not an integer"));
  }
  return number;
}

double magnitude_cell(const csv_reader& file, std::string_view column, std::string_view text) {
  const samebits::parse_result read = samebits::parse(samebits::format_id::fp64, text);
  const auto number = std::bit_cast<double>(read.code);
  if (!read.ok || number < 0) {
    file.refuse(cat(column, ": ", samebits::tensor_file::quote(text), " is not a number >= 0"));
  }
  return number;
}

// --- Traces of gradients --------------------------------------------------------------------------

namespace {

using samebits::tensor_file::error_kind;
using samebits::tensor_file::file_error;

constexpr int absent = -1;

/// The index of each column.
struct trace_columns {
  int step = absent;
  int nonfinite = absent;
  int amax = absent;
  int loss_nonfinite = absent;
  std::size_t count = 0;
  std::vector<std::string> unknown;
};

trace_columns columns_of(csv_reader& file) {
  const auto header = file.next();
  if (!header) file.refuse("there is no header");
  const std::vector<std::string_view> names = csv_cells(*header);
  trace_columns found;
  found.count = names.size();
  for (std::size_t i = 0; i < names.size(); ++i) {
    int* const column = names[i] == "step"             ? &found.step
                        : names[i] == "nonfinite"      ? &found.nonfinite
                        : names[i] == "amax"           ? &found.amax
                        : names[i] == "loss_nonfinite" ? &found.loss_nonfinite
                                                       : nullptr;
    if (column == nullptr) {
      found.unknown.emplace_back(names[i]);
      continue;
    }
    if (*column != absent) file.refuse("column " + std::string(names[i]) + " stands there twice");
    *column = static_cast<int>(i);
  }
  if (found.step == absent) file.refuse("there is no column step");
  if ((found.nonfinite == absent) == (found.amax == absent)) {
    file.refuse("either a column nonfinite or a column amax is needed");
  }
  return found;
}

trace_step step_of(const csv_reader& file, const trace_columns& where,
                   std::span<const std::string_view> row) {
  const auto cell = [&](int column) { return row[static_cast<std::size_t>(column)]; };
  trace_step s;
  s.step = integer_cell(file, "step", cell(where.step));
  if (where.nonfinite != absent) s.nonfinite = flag_cell(file, "nonfinite", cell(where.nonfinite));
  if (where.amax != absent) s.amax = magnitude_cell(file, "amax", cell(where.amax));
  if (where.loss_nonfinite != absent) {
    s.loss_nonfinite = flag_cell(file, "loss_nonfinite", cell(where.loss_nonfinite));
  }
  return s;
}

/// The random bits of a step, as a number in [0, 1).
double uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t step) {
  return static_cast<double>(samebits::random_word(seed, stream, step, 32)) / 4294967296.0;
}

/// An approximately normal random number with standard deviation 1.
double normal(std::uint64_t seed, std::uint64_t step) {
  double sum = -6;
  for (std::uint64_t i = 0; i < 12; ++i) sum += uniform(seed, 1 + i, step);
  return sum;
}

/// The largest gradient for which 2^edge is the last scale without overflow. For integer edges it
/// is 1.5 times a power of two, so that an error of half a bit changes nothing. Between integers it
/// is interpolated linearly, which needs no library function.
double amax_below(double edge) {
  const double up = 15 - edge;
  const double whole = std::floor(up);
  return std::ldexp(1.5 * (1 + (up - whole)), static_cast<int>(whole));
}

struct scenario {
  std::string_view name;
  std::string_view what;
  void (*fill)(scaler_trace&, std::uint64_t seed);
  bool random = false;  ///< whether the seed matters
};

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

void fill_steady(scaler_trace& t, std::uint64_t) {
  for (trace_step& s : t.steps) s.amax = amax_below(13);
}

void fill_accidents(scaler_trace& t, std::uint64_t) {
  for (trace_step& s : t.steps) s.amax = s.step % 500 == 499 ? infinity : amax_below(13);
}

void fill_drift(scaler_trace& t, std::uint64_t) {
  const auto count = static_cast<double>(t.steps.size());
  for (trace_step& s : t.steps) s.amax = amax_below(8 + 12 * static_cast<double>(s.step) / count);
}

void fill_drop(scaler_trace& t, std::uint64_t) {
  const auto half = static_cast<std::int64_t>(t.steps.size() / 2);
  for (trace_step& s : t.steps) s.amax = amax_below(s.step < half ? 16 : 6);
}

void fill_random(scaler_trace& t, std::uint64_t seed) {
  for (trace_step& s : t.steps) {
    const bool bad = uniform(seed, 0, static_cast<std::uint64_t>(s.step)) < 1e-3;
    s.amax = bad ? infinity : amax_below(13);
  }
}

/// Whether a step is one of the 200 consecutive steps from the middle of the trace on.
bool in_streak(const scaler_trace& t, const trace_step& s) {
  const auto from = static_cast<std::int64_t>(t.steps.size() / 2);
  return s.step >= from && s.step < from + 200;
}

void fill_nan_streak(scaler_trace& t, std::uint64_t) {
  for (trace_step& s : t.steps) s.amax = in_streak(t, s) ? not_a_number : amax_below(13);
}

void fill_loss_streak(scaler_trace& t, std::uint64_t seed) {
  fill_nan_streak(t, seed);
  t.has_loss = true;
  for (trace_step& s : t.steps) s.loss_nonfinite = in_streak(t, s);
}

void fill_noisy(scaler_trace& t, std::uint64_t seed) {
  for (trace_step& s : t.steps) {
    s.amax = amax_below(13 + 0.7 * normal(seed, static_cast<std::uint64_t>(s.step)));
  }
}

void fill_alternating(scaler_trace& t, std::uint64_t) {
  for (trace_step& s : t.steps) s.amax = amax_below(s.step % 2 == 0 ? 20 : 8);
}

constexpr scenario scenarios[] = {
    {"steady", "2^13 is the last scale without overflow", fill_steady},
    {"accidents", "the same, and every 500th step bad whatever the scale is", fill_accidents},
    {"drift", "the last scale without overflow rises from 2^8 to 2^20", fill_drift},
    {"drop", "it falls from 2^16 to 2^6 half way", fill_drop},
    {"random", "2^13, and one step in a thousand bad whatever the scale is", fill_random, true},
    {"nan_streak", "2^13, and 200 steps of NaN half way", fill_nan_streak},
    {"loss_streak", "the same, from a loss that is not finite", fill_loss_streak},
    {"noisy", "2^13 with a standard deviation of 0.7 bits", fill_noisy, true},
    {"alternating", "2^20 and 2^8 in turn", fill_alternating},
};

}  // namespace

scaler_trace read_trace(const std::string& path) {
  const std::string text = read_text_file(path);
  csv_reader file(path, text);
  const trace_columns where = columns_of(file);
  scaler_trace trace;
  trace.kind = where.amax == absent ? trace_kind::open : trace_kind::closed;
  trace.has_loss = where.loss_nonfinite != absent;
  trace.unread_columns = where.unknown;
  while (const auto line = file.next()) {
    const std::vector<std::string_view> row = csv_cells(*line);
    if (row.size() != where.count) {
      file.refuse(cat(row.size(), " cells where the header has ", where.count));
    }
    trace.steps.push_back(step_of(file, where, row));
  }
  return trace;
}

scaler_trace generate_trace(std::string_view scenario_name, std::uint64_t steps,
                            std::uint64_t seed) {
  const auto& chosen = row_argument<scenario>("--generate", scenario_name, scenarios);
  scaler_trace trace;
  trace.kind = trace_kind::closed;
  trace.steps.resize(steps);
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    trace.steps[i].step = static_cast<std::int64_t>(i);
  }
  chosen.fill(trace, seed);
  return trace;
}

bool is_random_scenario(std::string_view name) {
  return std::any_of(std::begin(scenarios), std::end(scenarios),
                     [&](const scenario& s) { return s.name == name && s.random; });
}

std::string scenario_help() {
  std::string text;
  for (const scenario& s : scenarios) {
    text += (text.empty() ? "" : "; ") + std::string(s.name) + ": " + std::string(s.what);
  }
  return text;
}

std::string trace_csv(const scaler_trace& trace) {
  const bool open = trace.kind == trace_kind::open;
  std::string text =
      cat("step,", open ? "nonfinite" : "amax", trace.has_loss ? ",loss_nonfinite" : "", "\n");
  for (const trace_step& s : trace.steps) {
    const std::string value = open ? std::string(s.nonfinite ? "1" : "0")
                                   : samebits::to_hex_float(samebits::format_id::fp64,
                                                            std::bit_cast<std::uint64_t>(s.amax));
    text += cat(s.step, ",", value);
    if (trace.has_loss) text += s.loss_nonfinite ? ",1" : ",0";
    text += "\n";
  }
  return text;
}

// --- The loss scale of each step ------------------------------------------------------------------

namespace {

constexpr std::array<std::string_view, 3> wanted_columns = {"step", "scale", "applied"};

/// The positions of the wanted columns among the names of the header.
std::array<std::size_t, 3> positions_of(const csv_reader& file,
                                        const std::vector<std::string_view>& names) {
  std::array<std::size_t, 3> positions{};
  for (std::size_t i = 0; i < wanted_columns.size(); ++i) {
    std::size_t found = 0;
    for (std::size_t k = 0; k < names.size(); ++k) {
      if (names[k] != wanted_columns[i]) continue;
      positions[i] = k;
      ++found;
    }
    if (found == 0) file.refuse(cat("there is no column ", wanted_columns[i]));
    if (found > 1) file.refuse(cat("column ", wanted_columns[i], " stands there twice"));
  }
  return positions;
}

}  // namespace

std::vector<scaler_row> read_scale_trace(const std::string& path) {
  const std::string text = read_text_file(path);
  csv_reader file(path, text);
  const auto header = file.next();
  if (!header) file.refuse("there is no header");
  const std::vector<std::string_view> names = csv_cells(*header);
  const auto [step, scale, applied] = positions_of(file, names);
  std::vector<scaler_row> rows;
  while (const auto line = file.next()) {
    const std::vector<std::string_view> cells = csv_cells(*line);
    if (cells.size() != names.size()) {
      file.refuse(cat(number_of(cells.size(), "cell"), " under ", number_of(names.size(), "name")));
    }
    scaler_row row;
    row.step = integer_cell(file, "step", cells[step]);
    row.scale = magnitude_cell(file, "scale", cells[scale]);
    if (!std::isfinite(row.scale)) file.refuse("scale: must be finite");
    row.applied = flag_cell(file, "applied", cells[applied]);
    rows.push_back(row);
  }
  if (rows.empty()) file.refuse("there are no steps");
  return rows;
}

}  // namespace fpinspect
