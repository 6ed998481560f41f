// `fpinspect cast`: rounds values to formats and shows the outcome of each.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/formats/outcome.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "samebits/core/format.hpp"
#include "samebits/scalar.hpp"
#include "samebits/text.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;

/// One value rounded to one format.
struct cast_result {
  format_id format;
  std::uint64_t code;
  bool inexact;
  outcome what;
};

/// The values and how to cast them. If `from` is set, the values are codes.
struct cast_task {
  std::vector<std::string> values;
  std::vector<format_id> to;
  std::optional<format_id> from;
  samebits::convert_options rule;
};

/// In `cast 1.5 --to fp16 e4m3` the parser leaves e4m3 among the values. Format names among the
/// values belong to --to.
cast_task task_of(const cast_arguments& arguments) {
  cast_task task;
  std::vector<std::string> to = arguments.to;
  for (const std::string& value : arguments.values) {
    const bool is_name = !to.empty() && samebits::find_format(value).has_value();
    (is_name ? to : task.values).push_back(value);
  }
  if (task.values.empty()) throw usage_error("VALUE is required");
  task.to = format_list_argument("--to", to);
  for (int i = 0; to.empty() && i < samebits::format_count; ++i) {
    task.to.push_back(samebits::format_at(i));
  }
  if (!arguments.from.empty()) task.from = format_argument("--from", arguments.from);
  task.rule = rule_argument(arguments.rule);
  return task;
}

/// Casts value number `index`. With stochastic rounding, `index` is also its index in the random
/// stream.
std::vector<cast_result> cast_value(const cast_task& task, std::size_t index) {
  const std::string& text = task.values[index];
  const samebits::random_stream& stream = task.rule.random;
  const samebits::random_bits random{
      samebits::random_word(stream.seed, stream.stream, stream.offset + index, stream.bits),
      stream.bits};
  const samebits::cast_rule rule{task.rule.rounding, task.rule.overflow, task.rule.nan};
  std::vector<cast_result> results;
  for (const format_id to : task.to) {
    samebits::converted result{};
    source_class source{};
    if (task.from) {
      const auto code = code_argument(*task.from, text);
      if (!code) {
        throw usage_error("VALUE: " + samebits::tensor_file::quote(text) +
                          " is not a 0xCODE, which --from asks for");
      }
      source = class_of_code(*task.from, *code);
      result = samebits::convert_code(*task.from, to, *code, rule, random);
    } else {
      const samebits::parse_result parsed = samebits::parse(to, text, rule, random);
      if (!parsed.ok) {
        const bool is_name = samebits::find_format(text).has_value();
        throw usage_error(cat("VALUE: ", samebits::tensor_file::quote(text),
                              " is not a number, from byte ", parsed.error_offset, " on",
                              is_name ? "; formats stand behind --to" : ""));
      }
      source = class_of_text(text);
      result = {parsed.code, parsed.inexact, parsed.overflow};
    }
    results.push_back({to, result.code, result.inexact, outcome_of(source, to, result)});
  }
  return results;
}

void write_json(const cast_task& task, output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("round", samebits::name(task.rule.rounding));
  json.member("overflow", samebits::name(task.rule.overflow));
  json.member("nan", samebits::name(task.rule.nan));
  json.key("casts");
  json.begin_array();
  for (std::size_t i = 0; i < task.values.size(); ++i) {
    json.begin_object();
    json.member("input", task.values[i]);
    if (task.from) json.member("from", samebits::name(*task.from));
    json.key("results");
    json.begin_array();
    for (const cast_result& result : cast_value(task, i)) {
      json.begin_object(json_writer::layout::one_line);
      json.member("format", samebits::name(result.format));
      json.member("code", code_text(result.format, result.code));
      json.member("value", samebits::to_shortest(result.format, result.code));
      json.member("number", finite_value(result.format, result.code));
      json.member("inexact", result.inexact);
      json.member("outcome", name(result.what));
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out.write(json.document());
}

paint paint_of(outcome what) {
  switch (what) {
    case outcome::exact: return paint::good;
    case outcome::rounded:
    case outcome::subnormal: return paint::caution;
    default: return paint::bad;
  }
}

std::string row(std::string_view format, std::string_view code, std::string_view value,
                std::string_view what) {
  return cat(left(format, 10), left(code, 20), left(value, 26), what, "\n");
}

void write_table(const cast_task& task, const terminal& term, output& out) {
  for (std::size_t i = 0; i < task.values.size(); ++i) {
    const std::vector<cast_result> results = cast_value(task, i);
    const std::string from = task.from ? cat(samebits::name(*task.from), " ") : "";
    out.write(i == 0 ? "" : "\n");
    out.write(cat(
        term.painted(paint::heading, from + samebits::tensor_file::escape(task.values[i])), "\n"));
    out.write(row("format", "code", "value", "what happened"));
    for (const cast_result& result : results) {
      const bool exact_subnormal = result.what == outcome::subnormal && !result.inexact;
      out.write(row(samebits::name(result.format), code_text(result.format, result.code),
                    value_text(result.format, result.code),
                    cat(term.painted(paint_of(result.what), name(result.what)),
                        exact_subnormal ? ", exact" : "")));
    }
  }
}

}  // namespace

void run_cast(const cast_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  const cast_task task = task_of(arguments);
  if (arguments.view.json) {
    write_json(task, out);
  } else {
    write_table(task, term, out);
  }
}

}  // namespace fpinspect
