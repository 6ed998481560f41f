// `fpinspect arith`: one operation on numbers, or on the elements of files, with the flags that it
// raises.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/named_argument.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/formats/arith_function.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/formats/flag_names.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "fpinspect/tensors/source/source.hpp"
#include "fpinspect/tensors/tensor_output.hpp"
#include "samebits/arithmetic.hpp"
#include "samebits/array_arithmetic.hpp"
#include "samebits/core/function.hpp"
#include "samebits/scalar.hpp"
#include "samebits/text.hpp"
#include "samebits/view.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

using samebits::flags;
using samebits::format_id;
using samebits::operation;
using samebits::tensor_file::dtype;

constexpr std::array<std::string_view, 3> operand_names{"A", "B", "C"};

/// An operand: a number of the command line, or a file. Codes are in the task's format.
struct arith_operand {
  std::string text;
  std::uint64_t code = 0;             ///< code of a number
  bool inexact = false;               ///< the text was rounded to the code
  std::optional<source_tensor> file;  ///< elements are codes, or floating point to be rounded
  std::uint64_t rounded = 0;          ///< files: number of elements that rounding changed
};

struct arith_task {
  operation op = operation::add;
  format_id from = format_id::fp32;
  format_id to = format_id::fp32;
  samebits::convert_options rule;
  std::vector<arith_operand> operands;
  std::vector<std::uint64_t> shape;  ///< shape of the files; empty for numbers only
  std::uint64_t count = 1;
};

operation operation_argument(std::string_view text) {
  return enumerator_argument<operation>("OP", text);
}

format_id arithmetic_format_argument(std::string_view option, std::string_view text) {
  const format_id format = format_argument(option, text);
  if (samebits::has_arithmetic(format)) return format;
  std::string names;
  for (int i = 0; i < samebits::format_count; ++i) {
    const format_id other = samebits::format_at(i);
    if (samebits::has_arithmetic(other)) names += cat(names.empty() ? "" : ", ", name(other));
  }
  throw usage_error(cat(option, ": there is no arithmetic in ", name(format), ", only in ", names));
}

arith_operand operand_argument(std::string_view which, const std::string& text,
                               const std::string& from, format_id format) {
  arith_operand operand{text, 0, false, std::nullopt, 0};
  const samebits::parse_result parsed = samebits::parse(format, text);
  if (!parsed.ok && names_a_file(text)) {
    operand.file = open_source(which, text, "--from", from, from_scope::integers);
    return operand;
  }
  if (!parsed.ok) {
    throw usage_error(cat(which, ": ", samebits::tensor_file::quote(text),
                          " is neither a number nor a file, from byte ", parsed.error_offset,
                          " on"));
  }
  operand.code = parsed.code;
  operand.inexact = parsed.inexact;
  return operand;
}

arith_task task_of(const arith_arguments& arguments) {
  arith_task task;
  task.op = operation_argument(arguments.op);
  task.from = arithmetic_format_argument("--format", arguments.format);
  task.to =
      arguments.dest.empty() ? task.from : arithmetic_format_argument("--dest", arguments.dest);
  task.rule = rule_argument(arguments.rule);
  const auto wanted = static_cast<std::size_t>(samebits::operand_count(task.op));
  if (arguments.operands.size() != wanted) {
    throw usage_error(cat(samebits::name(task.op), " takes ", wanted,
                          wanted == 1 ? " operand, got " : " operands, got ",
                          arguments.operands.size()));
  }
  std::string_view first;
  for (std::size_t i = 0; i < wanted; ++i) {
    task.operands.push_back(
        operand_argument(operand_names[i], arguments.operands[i], arguments.from, task.from));
    const auto& file = task.operands.back().file;
    if (!file) continue;
    if (first.empty()) {
      first = operand_names[i];
      task.shape = file->info.shape;
      task.count = file->info.count;
    } else if (task.shape != file->info.shape) {
      throw usage_error(cat(operand_names[i], ": its shape [", comma_separated(file->info.shape),
                            "] is not that of ", first, ", [", comma_separated(task.shape), "]"));
    }
  }
  if (!first.empty() && arguments.out.empty()) {
    throw usage_error(
        "--out: needed for the results of files; name a file, or - for standard output");
  }
  const auto& all = task.operands;
  if (!arguments.from.empty() && std::none_of(all.begin(), all.end(), [](const arith_operand& o) {
        return o.file && holds_integers(o.file->info);
      })) {
    throw usage_error("--from: no operand is a file of integers; leave it out");
  }
  return task;
}

std::uint64_t load_code(const std::byte* from, std::size_t bytes) {
  std::uint64_t code = 0;  // little-endian, like the files
  for (std::size_t i = bytes; i-- > 0;) code = code << 8 | std::to_integer<std::uint64_t>(from[i]);
  return code;
}

void store_code(std::byte* to, std::size_t bytes, std::uint64_t code) {
  for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(code >> (8 * i) & 0xFF);
}

/// Reads elements [first, first + count) as codes of the task's format. Floating-point elements of
/// another format are rounded to it.
std::vector<std::byte> read_operand(arith_operand& operand, format_id format, std::uint64_t first,
                                    std::size_t count) {
  const auto bytes = static_cast<std::size_t>(samebits::storage_bytes(format));
  std::vector<std::byte> codes(count * bytes);
  if (!operand.file) {
    for (std::size_t i = 0; i < count; ++i) store_code(&codes[i * bytes], bytes, operand.code);
    return codes;
  }
  const source_tensor& source = *operand.file;
  if (source.format() == format) {
    source.read(first, count, codes.data());
    return codes;
  }
  const auto read_bytes = static_cast<std::size_t>(samebits::storage_bytes(source.format()));
  std::vector<std::byte> read(count * read_bytes);
  source.read(first, count, read.data());
  for (std::size_t i = 0; i < count; ++i) {
    const samebits::converted rounded = samebits::convert_code(
        source.format(), format, load_code(&read[i * read_bytes], read_bytes));
    store_code(&codes[i * bytes], bytes, rounded.code);
    if (rounded.inexact) ++operand.rounded;
  }
  return codes;
}

struct arith_elements {
  std::vector<std::byte> codes;
  std::vector<flags> flags_of_each;
  /// Number of elements that raised each flag.
  std::array<std::uint64_t, named_flags.size()> raised{};
};

arith_elements all_elements(arith_task& task) {
  constexpr std::uint64_t chunk = 1 << 16;
  const auto bytes = static_cast<std::size_t>(samebits::storage_bytes(task.to));
  arith_elements result;
  result.codes.resize(task.count * bytes);
  result.flags_of_each.resize(task.count);
  samebits::compute_options options{task.rule.rounding, task.rule.overflow, task.rule.nan,
                                    task.rule.random};
  for (std::uint64_t first = 0; first < task.count; first += chunk) {
    const auto size = static_cast<std::size_t>(std::min(chunk, task.count - first));
    const auto columns = static_cast<std::int64_t>(size);
    std::array<std::vector<std::byte>, 3> codes;
    std::array<samebits::const_matrix_view, 3> in;
    for (std::size_t k = 0; k < task.operands.size(); ++k) {
      codes[k] = read_operand(task.operands[k], task.from, first, size);
      in[k] = samebits::view_of_codes(task.from, std::as_const(codes[k]).data(), 1, columns);
    }
    options.random.offset = task.rule.random.offset + first;
    flags* const raised = &result.flags_of_each[first];
    samebits::compute_with_flags(
        task.op, {in[0], in[1], in[2]},
        samebits::view_of_codes(task.to, &result.codes[first * bytes], 1, columns), options,
        {raised, columns}, {.backend = "reference"});
    for (const flags each : std::span(raised, size)) {
      for (std::size_t f = 0; f < named_flags.size(); ++f) {
        if (has(each, named_flags[f].flag)) ++result.raised[f];
      }
    }
  }
  return result;
}

/// The optional destinations of results and flags.
struct arith_targets {
  explicit arith_targets(const arith_arguments& arguments) {
    if (!arguments.out.empty()) out.emplace("--out", arguments.out);
    if (!arguments.flags.empty()) flags.emplace("--flags", arguments.flags);
  }

  [[nodiscard]] bool take_standard_output() const {
    return (out && out->is_standard_output()) || (flags && flags->is_standard_output());
  }

  std::optional<tensor_target> out;
  std::optional<tensor_target> flags;
};

void write_files(const arith_targets& targets, const arith_task& task,
                 const arith_elements& elements, output& out) {
  if (targets.out) targets.out->write("result", task.to, task.shape, elements.codes, out);
  if (targets.flags) {
    targets.flags->write("flags", dtype::u8, task.shape,
                         std::as_bytes(std::span(elements.flags_of_each)), out);
  }
}

void begin_json(json_writer& json, const arith_task& task) {
  json.begin_object();
  json.member("schema", 1);
  json.member("op", samebits::name(task.op));
  json.member("format", samebits::name(task.from));
  json.member("dest", samebits::name(task.to));
  json.member("round", samebits::name(task.rule.rounding));
  json.member("overflow", samebits::name(task.rule.overflow));
  json.member("nan", samebits::name(task.rule.nan));
  if (task.rule.rounding == samebits::rounding::stochastic) {
    json.member("seed", task.rule.random.seed);
    json.member("stream", task.rule.random.stream);
    json.member("offset", task.rule.random.offset);
    json.member("random_bits", task.rule.random.bits);
  }
}

void write_code_members(json_writer& json, format_id format, std::uint64_t code) {
  json.member("code", code_text(format, code));
  json.member("value", samebits::to_shortest(format, code));
  json.member("number", finite_value(format, code));
}

void write_json(const arith_task& task, const samebits::arithmetic_result& result, output& out) {
  json_writer json;
  begin_json(json, task);
  json.key("operands");
  json.begin_array();
  for (const arith_operand& operand : task.operands) {
    json.begin_object(json_writer::layout::one_line);
    json.member("input", operand.text);
    write_code_members(json, task.from, operand.code);
    json.member("inexact", operand.inexact);
    json.end_object();
  }
  json.end_array();
  json.key("result");
  json.begin_object(json_writer::layout::one_line);
  write_code_members(json, task.to, result.code);
  json.key("flags");
  json.begin_array(json_writer::layout::one_line);
  for (const std::string_view flag : names_of(result.raised)) json.value(flag);
  json.end_array();
  json.end_object();
  json.end_object();
  out.write(json.document());
}

void write_json(const arith_arguments& arguments, const arith_task& task,
                const arith_elements& elements, output& out) {
  json_writer json;
  begin_json(json, task);
  json.key("operands");
  json.begin_array();
  for (const arith_operand& operand : task.operands) {
    json.begin_object(json_writer::layout::one_line);
    json.member("input", operand.text);
    json.member("rounded", operand.file ? operand.rounded : operand.inexact ? task.count : 0);
    json.end_object();
  }
  json.end_array();
  json.member("output", arguments.out);
  if (!arguments.flags.empty()) json.member("flags_output", arguments.flags);
  json.member("count", task.count);
  json.member("shape", std::span<const std::uint64_t>(task.shape));
  json.key("raised");
  json.begin_object(json_writer::layout::one_line);
  for (std::size_t f = 0; f < named_flags.size(); ++f) {
    json.member(named_flags[f].name, elements.raised[f]);
  }
  json.end_object();
  json.end_object();
  out.write(json.document());
}

void write_table(const arith_task& task, const samebits::arithmetic_result& result,
                 const terminal& term, output& out) {
  const auto line = [&](std::string_view label, format_id format, std::uint64_t code,
                        const std::string& note) {
    std::string text =
        cat(left(label, 9), left(samebits::name(format), 6), left(code_text(format, code), 12),
            left(value_text(format, code), 26), note);
    text.erase(text.find_last_not_of(' ') + 1);
    out.write(text + "\n");
  };
  for (std::size_t i = 0; i < task.operands.size(); ++i) {
    const arith_operand& operand = task.operands[i];
    const std::string note =
        operand.inexact ? "rounded from " + samebits::tensor_file::escape(operand.text, 60) : "";
    line(operand_names[i], task.from, operand.code, note);
  }
  std::string raised;
  for (const std::string_view flag : names_of(result.raised)) {
    raised += cat(raised.empty() ? "" : ", ", flag);
  }
  const bool only_inexact = result.raised == flags::inexact;
  line(samebits::name(task.op), task.to, result.code,
       raised.empty() ? "no flags"
                      : term.painted(only_inexact ? paint::caution : paint::bad, raised));
}

std::string notes(const tensor_target& target, const arith_task& task,
                  const arith_elements& elements) {
  std::string text;
  for (std::size_t i = 0; i < task.operands.size(); ++i) {
    const arith_operand& operand = task.operands[i];
    if (!operand.file || operand.file->format() == task.from) continue;
    text += cat(operand_names[i], ": ", operand.rounded, " of ", number_of(task.count, "element"),
                " of ", type_text(operand.file->info, operand.file->how), " were inexact in ",
                samebits::name(task.from), "\n");
  }
  text +=
      cat(target.shown(), ": ", number_of(task.count, "element"), " [", comma_separated(task.shape),
          "], ", samebits::name(task.op), " of ", samebits::name(task.from), " -> ",
          samebits::name(task.to), " (", samebits::name(task.rule.rounding), ", ",
          samebits::name(task.rule.overflow), ", ", samebits::name(task.rule.nan), ");");
  for (std::size_t f = 0; f < named_flags.size(); ++f) {
    text += cat(f == 0 ? " " : ", ", elements.raised[f], " ", named_flags[f].name);
  }
  return text + "\n";
}

}  // namespace

void run_arith(const arith_arguments& arguments, output& out) {
  if (const auto function = samebits::find_enumerator<samebits::function>(arguments.op)) {
    return run_arith_function(*function, arguments, out);
  }
  if (!arguments.rule_of_function.empty()) refuse_rule_of(arguments.op);
  if (arguments.format.empty()) throw usage_error("--format is required");
  const terminal term(arguments.view);
  const arith_targets targets(arguments);
  arith_task task = task_of(arguments);
  const bool files =
      std::any_of(task.operands.begin(), task.operands.end(),
                  [](const arith_operand& operand) { return operand.file.has_value(); });
  const arith_elements elements = all_elements(task);
  write_files(targets, task, elements, out);
  if (files) {
    if (arguments.view.json) return write_json(arguments, task, elements, out);
    static_cast<void>(std::fputs(notes(*targets.out, task, elements).c_str(), stderr));
    return;
  }
  const samebits::arithmetic_result result{load_code(elements.codes.data(), elements.codes.size()),
                                           elements.flags_of_each.front()};
  if (arguments.view.json) return write_json(task, result, out);
  output report(targets.take_standard_output() ? STDERR_FILENO : STDOUT_FILENO);
  write_table(task, result, term, report);
  report.flush();
}

}  // namespace fpinspect
