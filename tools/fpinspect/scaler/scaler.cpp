// `fpinspect scaler`: runs a trace of gradients through a loss-scaling policy, step by step.
#include <variant>

#include "fpinspect/cli/command.hpp"
#include "fpinspect/cli/files.hpp"
#include "fpinspect/scaler/traces.hpp"
#include "samebits/error.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/scalar.hpp"
#include "samebits/text.hpp"

namespace fpinspect {

// --- A loss scale over time as a chart -----------------------------------------------------------

namespace {

constexpr std::size_t scale_margin = 10;  // width left of the columns
constexpr int max_rows = 16;

/// floor(log2(scale)). Zero gives -1075 and infinity 1024, outside the range of all other scales.
double scale_exponent(double scale) {
  if (scale == 0) return -1075;
  return std::isfinite(scale) ? std::ilogb(scale) : 1024;
}

std::string_view skip_mark(const trace_column& c, charset characters) {
  const std::span<const std::string_view> marks = level_marks(characters);
  const std::size_t top = marks.size() - 1;
  return marks[(c.skipped * top + c.steps - 1) / c.steps];  // a single skipped step is visible
}

std::string scale_label(int exponent) {
  if (exponent == -1075) return "0";
  return exponent == 1024 ? "inf" : cat("2^", exponent);
}

/// The chart as text. Each line is at most as wide as the terminal and ends with a newline. Empty
/// if there are no rows. Each column covers one step or an equal number of steps, and shows every
/// scale used in them.
std::string scaler_plot(std::span<const scaler_row> rows, const terminal& term) {
  if (rows.empty()) return {};
  const bool unicode = term.characters() == charset::unicode;
  const auto room = static_cast<std::size_t>(term.width()) - scale_margin;
  const std::vector<trace_column> columns = trace_columns(rows, room, scale_exponent);
  const auto lowest = static_cast<int>(std::ranges::min(columns, {}, &trace_column::lowest).lowest);
  const auto highest =
      static_cast<int>(std::ranges::max(columns, {}, &trace_column::highest).highest);
  const int each = (highest - lowest) / max_rows + 1;  // exponents per row
  std::string text;
  for (int top = highest; top >= lowest; top -= each) {
    const int bottom = top - each + 1;
    std::string line;
    for (const trace_column& c : columns) {
      const bool here = c.lowest <= top && c.highest >= bottom;
      line += here ? (unicode ? "█" : "#") : " ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += cat(right(scale_label(top), scale_margin - 2), unicode ? " │" : " |", line, "\n");
  }
  std::string skips;
  for (const trace_column& c : columns) skips += skip_mark(c, term.characters());
  skips.erase(skips.find_last_not_of(' ') + 1);
  text += cat(right("skipped", scale_margin - 2), unicode ? " │" : " |",
              skips.empty() ? skips : term.painted(paint::bad, skips), "\n");
  const std::string first = std::to_string(rows.front().step);
  const std::string last = std::to_string(rows.back().step);
  const std::size_t gap =
      columns.size() > first.size() + last.size() ? columns.size() - first.size() - last.size() : 1;
  text += cat(right("step", scale_margin - 2), "  ", first, std::string(gap, ' '), last, "\n");
  return text;
}

// --- A trace of gradients through a loss-scaling policy, step by step ----------------------------

/// The settings of a policy, changed by each NAME=VALUE.
scaling_settings settings_of(scaling_policy policy, const std::vector<std::string>& changes) {
  scaling_settings settings = default_settings(policy);
  std::set<std::string> named;
  try {
    for (const std::string& text : changes) {
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos) refuse_value("--set", text, "is not name=value");
      const std::string name = text.substr(0, equals);
      if (!named.insert(name).second) refuse_value("--set", name, "is given twice");
      set_option(settings, name, std::string_view(text).substr(equals + 1));
    }
    check_settings(settings);
  } catch (const invalid_argument& error) {
    throw usage_error("--set: " + escape_message(error.what()));
  }
  return settings;
}

/// Whether the exact product overflows when rounded to nearest even to fp16. 65520 is the tie that
/// overflows.
bool overflows_fp16(double amax, double scale) {
  constexpr double tie = 65520;
  const double product = amax * scale;
  if (product == tie) return std::fma(amax, scale, -product) >= 0;
  return !(product < tie);
}

step_observation observed(const scaler_trace& trace, const trace_step& step, double scale) {
  step_observation seen;
  seen.loss_nonfinite = step.loss_nonfinite;
  if (trace.kind == trace_kind::open) {
    seen.nonfinite = step.nonfinite;
    return seen;
  }
  const double product = step.amax * scale;
  float scaled = std::numeric_limits<float>::infinity();
  if (std::isnan(product)) {
    scaled = std::numeric_limits<float>::quiet_NaN();
  } else if (!overflows_fp16(step.amax, scale)) {
    // The exact product is below the tie, but rounding to binary64 may have moved it to the tie.
    const std::uint16_t code =
        samebits::encode<format_id::fp16>(product, {.overflow = overflow::saturate});
    scaled = samebits::decode<format_id::fp16>(code);
  }
  seen.amax = std::bit_cast<std::uint32_t>(scaled);
  return seen;
}

struct replay_result {
  std::vector<scaler_row> rows;
  bool stopped = false;
  double final_scale = 0;
};

replay_result replay(const scaler_trace& trace, const scaling_settings& settings) {
  return std::visit(
      [&](const auto& s) {
        auto state = initial_state(s);
        replay_result result;
        for (const trace_step& step : trace.steps) {
          const double scale = scale_of(state);
          const step_decision decision = advance(s, state, observed(trace, step, scale));
          result.rows.push_back({step.step, scale, decision.apply, decision.cause});
          result.stopped = decision.stop;
          if (decision.stop) break;
        }
        result.final_scale = scale_of(state);
        return result;
      },
      settings);
}

std::string replay_csv(const replay_result& result) {
  std::string text = "step,scale,applied,cause\n";
  for (const scaler_row& row : result.rows) {
    text += cat(row.step, ",", hexadecimal(row.scale), row.applied ? ",1," : ",0,",
                std::string(name(row.cause)), "\n");
  }
  return text;
}

json_object json_of(const replay_result& result, scaling_policy policy) {
  std::map<std::string_view, std::uint64_t> counts;
  for (const scaler_row& row : result.rows) {
    if (!row.applied) ++counts[name(row.cause)];
  }
  json_object causes;
  for (const auto& [cause, count] : counts) causes.add(cause, count);
  return {{"policy", name(policy)},
          {"steps", result.rows.size()},
          {"skipped", skipped_steps(result.rows)},
          {"causes", causes},
          {"final_scale", hexadecimal(result.final_scale)},
          {"stopped", result.stopped}};
}

run_function scaler_command(option_list& add) {
  add.ascii();
  auto& policy = add.optional_value("--policy", enumerator_argument<scaling_policy>,
                                    names_of<scaling_policy>(" or "));
  auto& trace_file =
      add.text("--trace", "CSV: step, nonfinite or amax, optional loss_nonfinite; - reads stdin");
  auto& generate = add.text("--generate", "A trace: " + scenario_help());
  auto& steps = add.value("--steps", integer(0, 100'000'000), "Steps to generate", "40000");
  auto& seed = add.value("--seed", integer(), "Of their random bits", "0");
  auto& set = add.several("--set", "Settings of the policy, name=value");
  auto& plot = add.flag("--plot", "Draw instead of writing CSV");
  auto& out = add.text("--out", "FILE.csv to write (default: standard output)");
  add.exclude("--trace", {"--generate"});
  add.exclude("--plot", {"--json"});
  add.need({"--steps"}, "--generate");
  add.need(
      {"--seed"}, [&] { return is_random_scenario(generate); }, "--generate random or noisy");
  add.need({"--trace", "--set", "--plot", "--json"}, "--policy");
  add.need({"--ascii"}, "--plot");
  add.refuse([&] { return out == "-" && (plot || add.given("--json")); },
             "--out -: standard output has the drawing or the JSON already; name a file");
  return [&](const session& s) {
    refuse_if(generate.empty() && trace_file.empty(),
              "either --trace FILE or --generate SCENARIO is needed");
    const output_file target("--out", out.empty() ? "-" : out, {".csv"});
    const scaler_trace trace =
        generate.empty() ? read_trace(trace_file) : generate_trace(generate, steps, seed);
    if (!policy) return target.write({trace_csv(trace)}, s.out);
    const replay_result result = replay(trace, settings_of(*policy, set));
    const bool to_file = !target.is_standard_output();
    if (to_file) target.write({replay_csv(result)}, s.out);
    if (s.json) {
      s.write_json(json_of(result, *policy));
    } else if (plot) {
      s.out.write(scaler_plot(result.rows, s.term));
      s.out.write(result.rows.size(), " steps, ", skipped_steps(result.rows), " skipped, scale ",
                  hexadecimal(result.final_scale), " at the end\n");
    } else if (!to_file) {
      s.out.write(replay_csv(result));
    }
    for (const std::string& column : trace.unread_columns) {
      s.note("fpinspect: column ", quote(column), " is not read\n");
    }
    if (!result.stopped) return;
    s.out.flush();
    s.note("fpinspect: policy ", *policy, " ends the run after step ", result.rows.back().step,
           "\n");
  };
}

const registered scaler_here("scaler", "Show what a loss-scaling policy makes of a trace", 120,
                             scaler_command);

}  // namespace

}  // namespace fpinspect
