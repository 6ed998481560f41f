// Traces of training runs in CSV: of gradients, for `fpinspect scaler`, and of loss scales.
#include "fpinspect/scaler/traces.hpp"

#include <charconv>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/files.hpp"
#include "samebits/scalar.hpp"
#include "samebits/text.hpp"

namespace fpinspect {

std::vector<trace_column> trace_columns(std::span<const scaler_row> rows, std::size_t most,
                                        double (*height_of)(double)) {
  const std::size_t each = (rows.size() + most - 1) / most;
  std::vector<trace_column> all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double height = height_of(rows[i].scale);
    if (i % each == 0) all.push_back({height, height, 0, 0});
    trace_column& c = all.back();
    c.lowest = std::min(c.lowest, height);
    c.highest = std::max(c.highest, height);
    ++c.steps;
    if (!rows[i].applied) ++c.skipped;
  }
  return all;
}

// --- CSV text of traces --------------------------------------------------------------------------

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

constexpr int absent = -1;

/// A file of CSV text, without quotes, whose header names the columns.
class csv_table {
 public:
  /// @param path  the file's name in errors; "-" is standard input
  explicit csv_table(const std::string& path)
      : path_(path), text_(read_text_file(path)), lines_(split(text_, '\n')) {
    if (lines_.back().empty()) lines_.pop_back();  // behind the last line break
    const auto header = next_line();
    if (!header) refuse("there is no header");
    names_ = cells_of(*header);
  }

  [[nodiscard]] const std::vector<std::string_view>& names() const { return names_; }

  /// The position of a column, which may not stand there twice.
  [[nodiscard]] int find(std::string_view name) const {
    int found = absent;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] != name) continue;
      if (found != absent) refuse(cat("column ", name, " stands there twice"));
      found = static_cast<int>(i);
    }
    return found;
  }
  [[nodiscard]] int require(std::string_view name) const {
    const int found = find(name);
    if (found == absent) refuse(cat("there is no column ", name));
    return found;
  }

  /// Reads the next line that is not blank. Returns whether there is one.
  /// @param why  the message if it has other cells than the header: why(cells, names)
  template <class Why>
  bool read_row(const Why& why) {
    const auto line = next_line();
    if (!line) return false;
    cells_ = cells_of(*line);
    if (cells_.size() != names_.size()) refuse(why(cells_.size(), names_.size()));
    return true;
  }

  /// @throws file_error  that names the file and the line
  [[noreturn]] void refuse(const std::string& why) const { refuse_line(path_, number_, why); }

  // Each reads a cell of the row. They refuse any other text, and name the column.
  [[nodiscard]] bool flag(int column) const {
    const std::string_view text = cell(column);
    if (text == "1" || text == "true" || text == "True") return true;
    if (text != "0" && text != "false" && text != "False") refuse_cell(column, "is not 0 or 1");
    return false;
  }
  [[nodiscard]] std::int64_t integer(int column) const {
    const std::string_view text = cell(column);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) {
      refuse_cell(column, "is not an integer");
    }
    return number;
  }
  /// A number >= 0, Inf or NaN.
  [[nodiscard]] double magnitude(int column) const {
    const parse_result read = parse(format_id::fp64, cell(column));
    const auto number = std::bit_cast<double>(read.code);
    if (!read.ok || number < 0) refuse_cell(column, "is not a number >= 0");
    return number;
  }

 private:
  std::optional<std::string_view> next_line() {
    while (number_ < lines_.size()) {
      if (const auto line = trimmed(lines_[number_++]); !line.empty()) return line;
    }
    return std::nullopt;
  }

  static std::vector<std::string_view> cells_of(std::string_view line) {
    std::vector<std::string_view> all = split(line, ',');
    for (std::string_view& cell : all) cell = trimmed(cell);
    return all;
  }

  [[nodiscard]] std::string_view cell(int column) const {
    return cells_[static_cast<std::size_t>(column)];
  }
  [[noreturn]] void refuse_cell(int column, std::string_view why) const {
    refuse(cat(names_[static_cast<std::size_t>(column)], ": ", quote(cell(column)), " ", why));
  }

  std::string path_;
  std::string text_;
  std::vector<std::string_view> lines_;
  std::size_t number_ = 0;  ///< of the last line that was read, from 1 on
  std::vector<std::string_view> names_;
  std::vector<std::string_view> cells_;
};

}  // namespace

// --- Traces of gradients -------------------------------------------------------------------------

namespace {

/// The random bits of a step, as a number in [0, 1).
double uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t step) {
  return static_cast<double>(random_word(seed, stream, step, 32)) / 4294967296.0;
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

/// A step of a generated trace.
struct moment {
  std::uint64_t step;
  std::uint64_t count;  ///< of steps
  std::uint64_t seed;

  /// Whether the step is one of the 200 consecutive steps from the middle of the trace on.
  [[nodiscard]] bool in_streak() const { return step >= count / 2 && step < count / 2 + 200; }
};

struct scenario {
  std::string_view name;
  std::string_view what;
  double (*amax)(const moment&);
  bool random = false;    ///< whether the seed matters
  bool has_loss = false;  ///< the loss is not finite in the streak
};

constexpr double infinity = std::numeric_limits<double>::infinity();

double streak_amax(const moment& m) {
  return m.in_streak() ? std::numeric_limits<double>::quiet_NaN() : amax_below(13);
}

constexpr scenario scenarios[] = {
    {"steady", "2^13 is the last scale without overflow",
     [](const moment&) { return amax_below(13); }},
    {"accidents", "the same, and every 500th step bad whatever the scale is",
     [](const moment& m) { return m.step % 500 == 499 ? infinity : amax_below(13); }},
    {"drift", "the last scale without overflow rises from 2^8 to 2^20",
     [](const moment& m) {
       return amax_below(8 + 12 * static_cast<double>(m.step) / static_cast<double>(m.count));
     }},
    {"drop", "it falls from 2^16 to 2^6 half way",
     [](const moment& m) { return amax_below(m.step < m.count / 2 ? 16 : 6); }},
    {"random", "2^13, and one step in a thousand bad whatever the scale is",
     [](const moment& m) { return uniform(m.seed, 0, m.step) < 1e-3 ? infinity : amax_below(13); },
     true},
    {"nan_streak", "2^13, and 200 steps of NaN half way", streak_amax},
    {"loss_streak", "the same, from a loss that is not finite", streak_amax, false, true},
    {"noisy", "2^13 with a standard deviation of 0.7 bits",
     [](const moment& m) { return amax_below(13 + 0.7 * normal(m.seed, m.step)); }, true},
    {"alternating", "2^20 and 2^8 in turn",
     [](const moment& m) { return amax_below(m.step % 2 == 0 ? 20 : 8); }},
};

}  // namespace

scaler_trace read_trace(const std::string& path) {
  csv_table file(path);
  scaler_trace trace;
  for (const std::string_view name : file.names()) {
    const bool known =
        name == "step" || name == "nonfinite" || name == "amax" || name == "loss_nonfinite";
    static_cast<void>(known ? file.find(name) : absent);  // refuses one that stands there twice
    if (!known) trace.unread_columns.emplace_back(name);
  }
  const int step = file.require("step");
  const int nonfinite = file.find("nonfinite");
  const int amax = file.find("amax");
  const int loss_nonfinite = file.find("loss_nonfinite");
  if ((nonfinite == absent) == (amax == absent)) {
    file.refuse("either a column nonfinite or a column amax is needed");
  }
  trace.kind = amax == absent ? trace_kind::open : trace_kind::closed;
  trace.has_loss = loss_nonfinite != absent;
  const auto why = [](std::size_t cells, std::size_t names) {
    return cat(cells, " cells where the header has ", names);
  };
  while (file.read_row(why)) {
    trace_step& s = trace.steps.emplace_back();
    s.step = file.integer(step);
    if (nonfinite != absent) s.nonfinite = file.flag(nonfinite);
    if (amax != absent) s.amax = file.magnitude(amax);
    if (trace.has_loss) s.loss_nonfinite = file.flag(loss_nonfinite);
  }
  return trace;
}

scaler_trace generate_trace(std::string_view scenario_name, std::uint64_t steps,
                            std::uint64_t seed) {
  const auto& chosen = row_argument<scenario>("--generate", scenario_name, scenarios);
  scaler_trace trace;
  trace.kind = trace_kind::closed;
  trace.has_loss = chosen.has_loss;
  trace.steps.reserve(steps);
  for (std::uint64_t i = 0; i < steps; ++i) {
    const moment now = {i, steps, seed};
    trace.steps.push_back({.step = static_cast<std::int64_t>(i),
                           .amax = chosen.amax(now),
                           .loss_nonfinite = chosen.has_loss && now.in_streak()});
  }
  return trace;
}

bool is_random_scenario(std::string_view name) {
  return std::ranges::any_of(scenarios,
                             [&](const scenario& s) { return s.name == name && s.random; });
}

std::string scenario_help() {
  return joined(
      scenarios, [](const scenario& s) { return cat(s.name, ": ", s.what); }, "; ");
}

std::string hexadecimal(double x) {
  return to_hex_float(format_id::fp64, std::bit_cast<std::uint64_t>(x));
}

std::string trace_csv(const scaler_trace& trace) {
  const bool open = trace.kind == trace_kind::open;
  std::string text =
      cat("step,", open ? "nonfinite" : "amax", trace.has_loss ? ",loss_nonfinite" : "", "\n");
  for (const trace_step& s : trace.steps) {
    const std::string value = open ? (s.nonfinite ? "1" : "0") : hexadecimal(s.amax);
    text += cat(s.step, ",", value);
    if (trace.has_loss) text += s.loss_nonfinite ? ",1" : ",0";
    text += "\n";
  }
  return text;
}

// --- The loss scale of each step -----------------------------------------------------------------

std::vector<scaler_row> read_scale_trace(const std::string& path) {
  csv_table file(path);
  const int step = file.require("step");
  const int scale = file.require("scale");
  const int applied = file.require("applied");
  const auto why = [](std::size_t cells, std::size_t names) {
    return cat(number_of(cells, "cell"), " under ", number_of(names, "name"));
  };
  std::vector<scaler_row> rows;
  while (file.read_row(why)) {
    scaler_row& row = rows.emplace_back();
    row.step = file.integer(step);
    row.scale = file.magnitude(scale);
    if (!std::isfinite(row.scale)) file.refuse("scale: must be finite");
    row.applied = file.flag(applied);
  }
  if (rows.empty()) file.refuse("there are no steps");
  return rows;
}

}  // namespace fpinspect
