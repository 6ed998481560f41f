// `fpinspect update`: a weight under an optimizer, kept in several ways side by side.

#include "fpinspect/cli/command.hpp"
#include "fpinspect/explore/update/weight_life.hpp"
#include "fpinspect/tensors/source/source.hpp"
#include "samebits/error.hpp"
#include "samebits/text.hpp"

namespace fpinspect {
namespace {

struct update_result {
  update_plan plan;
  std::string gradient;  ///< the argument
  std::vector<weight_life> lives;
  std::vector<double> exact;
};

float fp32_argument(std::string_view option, std::string_view text) {
  const auto number = static_cast<float>(number_argument(option, text));
  if (std::isfinite(number)) return number;
  refuse_value(option, text, "is beyond the numbers of fp32");
}

/// The first `steps` elements of a file, or all if there are fewer.
std::vector<float> gradients_of_file(const std::string& input, std::uint64_t steps) {
  const source_tensor source = open_source("--gradient", input, "--from", "");
  const std::uint64_t count = std::min(source.info.count, steps);
  if (count == 0) throw usage_error("--gradient: ", quote(input), " has no elements");
  std::vector<std::byte> codes(static_cast<std::size_t>(count) * sizeof(double));
  source.read(0, count, codes.data());
  std::vector<double> values(static_cast<std::size_t>(count));
  decode(source.format(), codes.data(), values);
  return {values.begin(), values.end()};
}

std::vector<float> gradients_of(const std::string& argument, std::uint64_t steps) {
  const bool is_number = parse(format_id::fp64, argument).ok;
  if (!is_number && names_a_file(argument)) return gradients_of_file(argument, steps);
  return {fp32_argument("--gradient", argument)};
}

/// 0, 1, 2, 5, 10, 20, 50, ... or 0 and the multiples of `every`; and the last step.
std::vector<std::uint64_t> shown_steps(std::uint64_t steps, std::uint64_t every) {
  std::vector<std::uint64_t> shown = {0};
  if (every != 0) {
    for (std::uint64_t t = every; t < steps; t += every) shown.push_back(t);
  } else {
    for (std::uint64_t decade = 1; decade < steps; decade *= 10) {
      for (const std::uint64_t t : {decade, 2 * decade, 5 * decade}) {
        if (t < steps) shown.push_back(t);
      }
    }
  }
  shown.push_back(steps);
  return shown;
}

/// A refusal by optimizer_step(), "groups[0].learning_rate: ...", with the option's name.
std::string option_message(std::string message) {
  constexpr std::string_view prefix = "groups[0].";
  constexpr std::pair<std::string_view, std::string_view> names[] = {{"learning_rate", "lr"},
                                                                     {"eps", "epsilon"}};
  if (!message.starts_with(prefix)) return message;
  message.erase(0, prefix.size());
  for (const auto& [member, option] : names) {
    if (message.starts_with(member)) message.replace(0, member.size(), option);
  }
  std::replace(message.begin(), std::ranges::find(message, ':'), '_', '-');
  return "--" + message;
}

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
double bytes_with_states(const weight_mode& mode, const optimizer_settings& settings) {
  return bytes_of(mode, scale_block) +
         state_count(settings) * bytes_of(stored_format::fp32, scale_block);
}

/// A mode at the end.
struct mode_row {
  const update_result& all;
  const weight_mode& mode;
  const weight_life& life;
  double exact = all.exact.back();
  equal_result equal = equal_result_of(life, exact);

  [[nodiscard]] double bytes() const { return bytes_with_states(mode, all.plan.settings); }
};

std::vector<mode_row> mode_rows(const update_result& result) {
  std::vector<mode_row> rows;
  for (std::size_t i = 0; i < result.lives.size(); ++i) {
    rows.push_back({result, result.plan.modes[i], result.lives[i]});
  }
  return rows;
}

std::string distance_text(const std::optional<double>& relative) {
  return relative ? general(*relative, 2) : "-";
}

/// Columns of width 0 become as wide as their cells.
constexpr column<mode_row> mode_columns[] = {
    {"name", "mode", 0, [](auto& r) { return r.mode.name; }},
    {"bytes_per_parameter", "bytes", 0, [](auto& r) { return r.bytes(); },
     [](auto& r) { return general(r.bytes(), 5); }},
    {"last_change", "last change", 0, [](auto& r) { return r.life.last_change; },
     [](auto& r) { return r.life.last_change == 0 ? "never" : cat("step ", r.life.last_change); }},
    {"read", "read", 0, [](auto& r) { return r.life.read.back(); },
     [](auto& r) { return general(r.life.read.back(), 6); }},
    {"read_distance", "distance", 0, [](auto& r) { return distance(r.life.read.back(), r.exact); },
     [](auto& r) { return distance_text(distance(r.life.read.back(), r.exact)); }},
    {"kept", "kept", 0, [](auto& r) { return r.life.kept; },
     [](auto& r) { return general(r.life.kept, 6); }},
    {"kept_distance", "distance", 0, [](auto& r) { return distance(r.life.kept, r.exact); },
     [](auto& r) { return distance_text(distance(r.life.kept, r.exact)); }},
    {"mean", "", 0, [](auto& r) { return r.equal.mean; }},
    {"rms_distance", "", 0, [](auto& r) { return r.equal.rms_distance; }},
};

json_object settings_json(const update_result& result) {
  const optimizer_settings& s = result.plan.settings;
  return {{"rule", name(s.rule)},
          {"learning_rate", s.learning_rate},
          {"weight_decay", s.weight_decay},
          {"beta1", s.beta1},
          {"beta2", s.beta2},
          {"epsilon", s.eps},
          {"momentum", s.momentum},
          {"gradient", result.gradient},
          {"start", double{result.plan.start}},
          {"block_amax", double{result.plan.block_amax}},
          {"steps", result.plan.shown.back()},
          {"seed", result.plan.seed},
          {"exact", result.exact.back()}};
}

json_object json_of(const update_result& result) {
  json_array rows;
  for (std::size_t k = 0; k < result.plan.shown.size(); ++k) {
    json_object row = {{"step", result.plan.shown[k]}, {"exact", result.exact[k]}};
    for (std::size_t i = 0; i < result.lives.size(); ++i) {
      row.add(result.plan.modes[i].name, result.lives[i].read[k]);
    }
    rows.add(row.on_one_line());
  }
  return settings_json(result).add(
      {{"modes", table_json(mode_columns, mode_rows(result), true)}, {"rows", rows}});
}

/// Cells of equal width, below a heading.
using text_cells = std::vector<std::string>;

std::size_t width_of(const text_cells& column) {
  const auto width = [](const std::string& cell) { return cell.size(); };
  return std::ranges::max(column, {}, width).size();
}

/// The first column is left-aligned, the others right-aligned.
std::string table_text(const std::vector<text_cells>& columns, const terminal& term) {
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

text_cells numbers_column(std::string_view heading, const std::vector<double>& numbers) {
  text_cells column = {std::string(heading)};
  for (const double number : numbers) column.push_back(general(number, 6));
  return column;
}

/// Weights at the shown steps, in as many tables as the terminal's width needs.
std::string steps_text(const update_result& result, const terminal& term) {
  text_cells steps = {"step"};
  for (const std::uint64_t step : result.plan.shown) steps.push_back(std::to_string(step));
  const std::vector<text_cells> ahead = {steps, numbers_column("exact", result.exact)};
  const std::size_t width_ahead = width_of(ahead[0]) + 2 + width_of(ahead[1]);
  std::string text;
  std::vector<text_cells> columns = ahead;
  std::size_t width = width_ahead;
  for (std::size_t i = 0; i < result.lives.size(); ++i) {
    text_cells next = numbers_column(result.plan.modes[i].name, result.lives[i].read);
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

std::string ends_text(const std::vector<mode_row>& rows, const terminal& term) {
  std::vector<text_cells> columns;
  for (const column<mode_row>& one : mode_columns) {
    if (!one.is_shown()) continue;
    columns.push_back({std::string(one.heading)});
    for (const mode_row& row : rows) columns.back().push_back(one.cell(row));
  }
  return table_text(columns, term);
}

/// The mean of the equal weights, where rounding is stochastic.
std::string means_text(const std::vector<mode_row>& rows) {
  std::string text;
  for (const mode_row& row : rows) {
    if (!is_stochastic(row.mode.weights)) continue;
    text += cat(row.mode.name, ": mean of ", equal_weights, " equal weights ",
                general(row.equal.mean, 6), ", rms distance ",
                distance_text(row.equal.rms_distance), "\n");
  }
  return text;
}

/// Why the FP8 modes do not show the start itself; empty without such modes.
std::string fp8_text(const update_plan& plan) {
  std::vector<std::string_view> names;
  for (const weight_mode& mode : plan.modes) {
    if (has_block_scales(mode.weights)) names.push_back(mode.name);
  }
  if (names.empty()) return "";
  return cat(joined(names), ": e4m3 codes; --block-amax ", general(double{plan.block_amax}, 6),
             " sets their scale\n");
}

std::string text_of(const update_result& result, const terminal& term) {
  const update_plan& plan = result.plan;
  const std::vector<mode_row> rows = mode_rows(result);
  std::string text = term.painted(
      paint::heading, plan.settings.rule, ", learning rate ", shortest(plan.settings.learning_rate),
      ", gradient ", escape(result.gradient), ": a weight of ", general(double{plan.start}, 6));
  text += cat("\n\n", steps_text(result, term));
  text +=
      cat("\n", ends_text(rows, term), "\n", means_text(rows),
          "bytes: of a weight with its fp32 states, without the gradient\n"
          "read: what the model reads   kept: what the optimizer goes on from\n",
          fp8_text(plan), "distance: |value / exact - 1|   exact: the same formula in binary64\n");
  return text;
}

optimizer_settings& add_settings(option_list& add) {
  auto& s = add.make<optimizer_settings>();
  add_enumerator(add, "--rule", s.rule, "adamw");
  add.fill("--lr", s.learning_rate, number_argument, "Learning rate", "1e-4");
  add.fill("--weight-decay", s.weight_decay, number_argument, "Weight decay", "0");
  add.fill("--beta1", s.beta1, number_argument, "Decay of the first state", "0.9");
  add.fill("--beta2", s.beta2, number_argument, "Decay of the second state", "0.999");
  add.fill("--epsilon", s.eps, number_argument, "Added to the root of the second state", "1e-8");
  add.fill("--momentum", s.momentum, number_argument, "Momentum of sgd", "0");
  return s;
}

run_function update_command(option_list& add) {
  constexpr std::uint64_t most_steps = 1'000'000;
  auto& settings = add_settings(add);
  auto& gradient = add.text(
      "--gradient", "Gradient of every step, or a file with one gradient for each step", "0.01");
  auto& start = add.value("--start", fp32_argument, "Weight before the first step", "1");
  auto& block_amax = add.optional_value("--block-amax", fp32_argument,
                                        "Largest weight of its block (default: 3 times the start)");
  auto& steps = add.value("--steps", integer(1, most_steps), "Number of steps", "1000");
  auto& every = add.value("--every", integer(1, most_steps),
                          "Show every N-th step (default: 1, 2, 5, 10, ...)");
  auto& seed = add.value("--seed", integer(), "Seed of stochastic rounding", "0");
  auto& modes = add.list(
      "--modes", [](const auto& names) { return weight_modes_argument("--modes", names); },
      "Ways to keep weights, or all (the default)");
  const auto is_sgd = [&] { return add.is("--rule", "sgd"); };
  add.need({"--momentum"}, is_sgd, "--rule sgd");
  add.need(
      {"--beta1", "--beta2", "--epsilon"}, [=] { return !is_sgd(); }, "another rule than sgd");
  return [&](const session& s) {
    try {
      constexpr float usual_ratio = 3;  // of the largest of 128 weights to a weight
      constexpr float largest = std::numeric_limits<float>::max();
      const update_plan plan = {
          settings,
          modes,
          start,
          block_amax.value_or(std::min(usual_ratio * std::abs(start), largest)),
          gradients_of(gradient, steps),
          shown_steps(steps, every),
          seed};
      const update_result result{plan, gradient, lives_of(plan), exact_life(plan)};
      s.write(json_of(result), text_of(result, s.term));
    } catch (const invalid_argument& error) {
      throw usage_error(option_message(error.what()));
    }
  };
}

const registered update_here("update", "Show a weight under an optimizer, kept in several ways",
                             220, update_command);

}  // namespace
}  // namespace fpinspect
