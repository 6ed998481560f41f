// What `update` shows, as text and as JSON: implementation.
#include "fpinspect/explore/update/update_result.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

/// |value / exact - 1|, if that is a number.
std::optional<double> distance(double value, double exact) {
  const double relative = std::abs(value - exact) / std::abs(exact);
  return std::isfinite(relative) ? std::optional(relative) : std::nullopt;
}

/// The equal weights of a mode at the end.
struct equal_result {
  double mean;
  std::optional<double> rms_distance;
};

equal_result equal_result_of(const weight_life& life, double exact) {
  double sum = 0;
  double squares = 0;
  for (const double value : life.equal) {
    sum += value;
    squares += (value - exact) * (value - exact);
  }
  const auto number = static_cast<double>(life.equal.size());
  return {sum / number, distance(exact + std::sqrt(squares / number), exact)};
}

/// Bytes of a weight and its states. States are fp32.
double bytes_with_states(const weight_mode& mode, const samebits::optimizer_settings& settings) {
  return bytes_of(mode, scale_block) +
         samebits::state_count(settings) * bytes_of(samebits::stored_format::fp32, scale_block);
}

void write_settings(json_writer& json, const update_result& result) {
  const samebits::optimizer_settings& s = result.plan.settings;
  json.member("rule", result.rule);
  json.member("learning_rate", s.learning_rate);
  json.member("weight_decay", s.weight_decay);
  json.member("beta1", s.beta1);
  json.member("beta2", s.beta2);
  json.member("epsilon", s.epsilon);
  json.member("momentum", s.momentum);
  json.member("gradient", result.gradient);
  json.member("start", double{result.plan.start});
  json.member("block_amax", double{result.plan.block_amax});
  json.member("steps", result.plan.shown.back());
  json.member("seed", result.plan.seed);
  json.member("exact", result.exact.back());
}

void write_mode(json_writer& json, const update_result& result, std::size_t i) {
  const weight_life& life = result.lives[i];
  const double exact = result.exact.back();
  const equal_result equal = equal_result_of(life, exact);
  json.begin_object(json_writer::layout::one_line);
  json.member("name", result.plan.modes[i].name);
  json.member("bytes_per_parameter", bytes_with_states(result.plan.modes[i], result.plan.settings));
  json.member("last_change", life.last_change);
  json.member("read", life.read.back());
  json.member("read_distance", distance(life.read.back(), exact));
  json.member("kept", life.kept);
  json.member("kept_distance", distance(life.kept, exact));
  json.member("mean", equal.mean);
  json.member("rms_distance", equal.rms_distance);
  json.end_object();
}

/// Cells of equal width, below a heading.
using column = std::vector<std::string>;

std::size_t width_of(const column& cells) {
  std::size_t width = 0;
  for (const std::string& cell : cells) width = std::max(width, cell.size());
  return width;
}

/// The first column is left-aligned, the others right-aligned.
std::string table_text(const std::vector<column>& columns, const terminal& term) {
  std::string text;
  for (std::size_t row = 0; row < columns.front().size(); ++row) {
    std::string line = left(columns.front()[row], width_of(columns.front()));
    for (std::size_t i = 1; i < columns.size(); ++i) {
      line += "  " + right(columns[i][row], width_of(columns[i]));
    }
    text += (row == 0 ? term.painted(paint::heading, line) : line) + "\n";
  }
  return text;
}

column numbers_column(std::string_view heading, const std::vector<double>& numbers) {
  column cells = {std::string(heading)};
  for (const double number : numbers) cells.push_back(general(number, 6));
  return cells;
}

/// Weights at the shown steps, in as many tables as the terminal's width needs.
std::string steps_text(const update_result& result, const terminal& term) {
  column steps = {"step"};
  for (const std::uint64_t step : result.plan.shown) steps.push_back(std::to_string(step));
  const std::vector<column> ahead = {steps, numbers_column("exact", result.exact)};
  const std::size_t width_ahead = width_of(ahead[0]) + 2 + width_of(ahead[1]);
  std::string text;
  std::vector<column> columns = ahead;
  std::size_t width = width_ahead;
  for (std::size_t i = 0; i < result.lives.size(); ++i) {
    column next = numbers_column(result.plan.modes[i].name, result.lives[i].read);
    const std::size_t more = 2 + width_of(next);
    if (columns.size() > ahead.size() && width + more > static_cast<std::size_t>(term.width())) {
      text += table_text(columns, term) + "\n";
      columns = ahead;
      width = width_ahead;
    }
    columns.push_back(std::move(next));
    width += more;
  }
  return text + table_text(columns, term);
}

std::string distance_text(double value, double exact) {
  const std::optional<double> relative = distance(value, exact);
  return relative ? general(*relative, 2) : "-";
}

std::string ends_text(const update_result& result, const terminal& term) {
  const double exact = result.exact.back();
  std::vector<column> columns = {{"mode"},     {"bytes"}, {"last change"}, {"read"},
                                 {"distance"}, {"kept"},  {"distance"}};
  for (std::size_t i = 0; i < result.lives.size(); ++i) {
    const weight_life& life = result.lives[i];
    const weight_mode& mode = result.plan.modes[i];
    const std::array<std::string, 7> cells = {
        std::string(mode.name),
        general(bytes_with_states(mode, result.plan.settings), 5),
        life.last_change == 0 ? "never" : cat("step ", life.last_change),
        general(life.read.back(), 6),
        distance_text(life.read.back(), exact),
        general(life.kept, 6),
        distance_text(life.kept, exact)};
    for (std::size_t k = 0; k < cells.size(); ++k) columns[k].push_back(cells[k]);
  }
  return table_text(columns, term);
}

/// The mean of the equal weights, where rounding is stochastic.
std::string means_text(const update_result& result) {
  std::string text;
  for (std::size_t i = 0; i < result.lives.size(); ++i) {
    if (!samebits::is_stochastic(result.plan.modes[i].weights)) continue;
    const equal_result equal = equal_result_of(result.lives[i], result.exact.back());
    text += cat(result.plan.modes[i].name, ": mean of ", equal_weights, " equal weights ",
                general(equal.mean, 6), ", rms distance ",
                equal.rms_distance ? general(*equal.rms_distance, 2) : "-", "\n");
  }
  return text;
}

/// Why the FP8 modes do not show the start itself; empty without such modes.
std::string fp8_text(const update_plan& plan) {
  std::string names;
  for (const weight_mode& mode : plan.modes) {
    if (!samebits::has_block_scales(mode.weights)) continue;
    names += cat(names.empty() ? "" : ", ", mode.name);
  }
  if (names.empty()) return "";
  return cat(names, ": e4m3 codes; --block-amax ", general(double{plan.block_amax}, 6),
             " sets their scale\n");
}

}  // namespace

std::string update_json(const update_result& result) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  write_settings(json, result);
  json.key("modes");
  json.begin_array();
  for (std::size_t i = 0; i < result.lives.size(); ++i) write_mode(json, result, i);
  json.end_array();
  json.key("rows");
  json.begin_array();
  for (std::size_t k = 0; k < result.plan.shown.size(); ++k) {
    json.begin_object(json_writer::layout::one_line);
    json.member("step", result.plan.shown[k]);
    json.member("exact", result.exact[k]);
    for (std::size_t i = 0; i < result.lives.size(); ++i) {
      json.member(result.plan.modes[i].name, result.lives[i].read[k]);
    }
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.document();
}

std::string update_text(const update_result& result, const terminal& term) {
  const update_plan& plan = result.plan;
  std::string text = term.painted(
      paint::heading, cat(result.rule, ", learning rate ", shortest(plan.settings.learning_rate),
                          ", gradient ", samebits::tensor_file::escape(result.gradient),
                          ": a weight of ", general(double{plan.start}, 6)));
  text += cat("\n\n", steps_text(result, term));
  text += cat("\n", ends_text(result, term), "\n", means_text(result),
              "bytes: of a weight with its fp32 states, without the gradient\n"
              "read: what the model reads   kept: what the optimizer goes on from\n",
              fp8_text(plan),
              "distance: |value / exact - 1|   exact: the same formula in binary64\n");
  return text;
}

}  // namespace fpinspect
