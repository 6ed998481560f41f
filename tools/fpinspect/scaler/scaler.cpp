// `fpinspect scaler`: runs a trace of gradients through a loss-scaling policy, step by step.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/files.hpp"
#include "fpinspect/cli/named_argument.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "fpinspect/scaler/scaler_plot.hpp"
#include "fpinspect/scaler/scaler_trace.hpp"
#include "samebits/error.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/scalar.hpp"
#include "samebits/text.hpp"
#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

samebits::scaling_policy policy_argument(std::string_view text) {
  return enumerator_argument<samebits::scaling_policy>("--policy", text);
}

samebits::scaling_settings settings_argument(const scaler_arguments& arguments) {
  samebits::scaling_settings settings =
      samebits::default_settings(policy_argument(arguments.policy));
  std::set<std::string> named;
  try {
    for (const std::string& text : arguments.set) {
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos) {
        throw usage_error("--set: " + samebits::tensor_file::quote(text) + " is not name=value");
      }
      const std::string name = text.substr(0, equals);
      if (!named.insert(name).second) {
        throw usage_error(cat("--set: ", samebits::tensor_file::quote(name), " is given twice"));
      }
      samebits::set_option(settings, name, std::string_view(text).substr(equals + 1));
    }
    samebits::check_settings(settings);
  } catch (const samebits::invalid_argument& error) {
    throw usage_error("--set: " + samebits::tensor_file::escape_message(error.what()));
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

samebits::step_observation observed(const scaler_trace& trace, const trace_step& step,
                                    double scale) {
  samebits::step_observation seen;
  seen.loss_nonfinite = step.loss_nonfinite;
  if (trace.kind == trace_kind::open) {
    seen.nonfinite = step.nonfinite;
    return seen;
  }
  using samebits::format_id;
  const double product = step.amax * scale;
  float scaled = std::numeric_limits<float>::infinity();
  if (std::isnan(product)) {
    scaled = std::numeric_limits<float>::quiet_NaN();
  } else if (!overflows_fp16(step.amax, scale)) {
    // The exact product is below the tie, but rounding to binary64 may have moved it to the tie.
    const std::uint16_t code =
        samebits::encode<format_id::fp16>(product, {.overflow = samebits::overflow::saturate});
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

replay_result replay(const scaler_trace& trace, const samebits::scaling_settings& settings) {
  return std::visit(
      [&](const auto& s) {
        auto state = samebits::initial_state(s);
        replay_result result;
        for (const trace_step& step : trace.steps) {
          const double scale = samebits::scale_of(state);
          const samebits::step_decision decision =
              samebits::advance(s, state, observed(trace, step, scale));
          result.rows.push_back({step.step, scale, decision.apply, decision.cause});
          result.stopped = decision.stop;
          if (decision.stop) break;
        }
        result.final_scale = samebits::scale_of(state);
        return result;
      },
      settings);
}

std::string hexadecimal(double x) {
  return samebits::to_hex_float(samebits::format_id::fp64, std::bit_cast<std::uint64_t>(x));
}

std::string replay_csv(const replay_result& result) {
  std::string text = "step,scale,applied,cause\n";
  for (const scaler_row& row : result.rows) {
    text += cat(row.step, ",", hexadecimal(row.scale), row.applied ? ",1," : ",0,",
                std::string(name(row.cause)), "\n");
  }
  return text;
}

std::size_t skipped_in(const replay_result& result) {
  std::size_t skipped = 0;
  for (const scaler_row& row : result.rows) {
    if (!row.applied) ++skipped;
  }
  return skipped;
}

void write_json(const scaler_arguments& arguments, const replay_result& result, output& out) {
  std::map<std::string, std::uint64_t> causes;
  for (const scaler_row& row : result.rows) {
    if (!row.applied) ++causes[std::string(name(row.cause))];
  }
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("policy", arguments.policy);
  json.member("steps", result.rows.size());
  json.member("skipped", skipped_in(result));
  json.key("causes");
  json.begin_object();
  for (const auto& [cause, count] : causes) json.member(cause, count);
  json.end_object();
  json.member("final_scale", hexadecimal(result.final_scale));
  json.member("stopped", result.stopped);
  json.end_object();
  out.write(json.document());
}

}  // namespace

void run_scaler(const scaler_arguments& arguments, output& out) {
  if (arguments.generate.empty() && arguments.trace.empty()) {
    throw usage_error("either --trace FILE or --generate SCENARIO is needed");
  }
  const output_file target("--out", arguments.out.empty() ? "-" : arguments.out, {".csv"});
  const bool to_file = !target.is_standard_output();
  constexpr std::uint64_t maximum = 100'000'000;
  const scaler_trace trace =
      arguments.generate.empty()
          ? read_trace(arguments.trace)
          : generate_trace(arguments.generate,
                           unsigned_argument("--steps", arguments.steps, 0, maximum),
                           unsigned_argument("--seed", arguments.seed));
  if (arguments.policy.empty()) return target.write({trace_csv(trace)}, out);
  const samebits::scaling_settings settings = settings_argument(arguments);
  const terminal term(arguments.view);
  const replay_result result = replay(trace, settings);
  if (to_file) target.write({replay_csv(result)}, out);
  if (arguments.view.json) {
    write_json(arguments, result, out);
  } else if (arguments.plot) {
    out.write(scaler_plot(result.rows, term));
    out.write(cat(result.rows.size(), " steps, ", skipped_in(result), " skipped, scale ",
                  hexadecimal(result.final_scale), " at the end\n"));
  } else if (!to_file) {
    out.write(replay_csv(result));
  }
  for (const std::string& column : trace.unread_columns) {
    const std::string line =
        cat("fpinspect: column ", samebits::tensor_file::quote(column), " is not read\n");
    static_cast<void>(std::fputs(line.c_str(), stderr));
  }
  if (result.stopped) {
    const std::string line = cat("fpinspect: policy ", arguments.policy,
                                 " ends the run after step ", result.rows.back().step, "\n");
    out.flush();
    static_cast<void>(std::fputs(line.c_str(), stderr));
  }
}

}  // namespace fpinspect
