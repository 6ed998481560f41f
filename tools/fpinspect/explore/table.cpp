// `fpinspect table`: an operation on all codes of an 8-bit format.
#include "fpinspect/explore/table.hpp"

#include <bitset>
#include <string>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/formats/flag_names.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "samebits/array_arithmetic.hpp"
#include "samebits/scalar.hpp"
#include "samebits/view.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {

operation_table table_of(samebits::operation op, samebits::format_id format,
                         const samebits::convert_options& rule) {
  const std::size_t columns = samebits::operand_count(op) == 1 ? 1 : table_codes;
  operation_table table{op, format, columns, {}, {}};
  table.results.resize(table_codes * columns);
  table.raised.resize(table_codes * columns);
  std::array<std::uint8_t, table_codes> codes{};
  for (std::size_t i = 0; i < table_codes; ++i) codes[i] = static_cast<std::uint8_t>(i);
  const auto rows = static_cast<std::int64_t>(table_codes);
  const auto cols = static_cast<std::int64_t>(columns);
  const samebits::const_matrix_view a{codes.data(), format, rows, cols, 1, 0};
  const samebits::const_matrix_view b{codes.data(), format, rows, cols, 0, 1};
  const samebits::matrix_view out =
      samebits::view_of_codes(format, static_cast<void*>(table.results.data()), rows, cols);
  samebits::compute_options options{rule.rounding, rule.overflow, rule.nan, rule.random};
  options.random.pitch = cols;
  samebits::compute_with_flags(op, {a, b}, out, options, {table.raised.data(), cols},
                               {.backend = "reference"});
  return table;
}

table_summary summary_of(const operation_table& table) {
  table_summary summary;
  std::bitset<table_codes> seen;
  for (std::size_t i = 0; i < table.results.size(); ++i) {
    const std::uint8_t code = table.results[i];
    seen.set(code);
    switch (samebits::classify(table.format, code)) {
      case samebits::number_class::zero: ++summary.zero; break;
      case samebits::number_class::subnormal: ++summary.subnormal; break;
      case samebits::number_class::normal: ++summary.normal; break;
      case samebits::number_class::infinite: ++summary.infinite; break;
      case samebits::number_class::nan: ++summary.nan; break;
    }
    for (std::size_t f = 0; f < named_flags.size(); ++f) {
      if (has(table.raised[i], named_flags[f].flag)) ++summary.flags[f];
    }
    if (table.columns == 1) continue;
    const std::size_t row = i / table.columns;
    const std::size_t column = i % table.columns;
    if (code != table.result(column, row)) ++summary.asymmetric;
  }
  summary.distinct = seen.count();
  return summary;
}

namespace {

samebits::operation table_operation(const std::string& text) {
  const auto found = samebits::find_enumerator<samebits::operation>(text);
  if (found && samebits::operand_count(*found) <= 2) return *found;
  std::string names;
  for (int i = 0; i < samebits::enum_count<samebits::operation>; ++i) {
    const samebits::operation op = static_cast<samebits::operation>(i);
    if (samebits::operand_count(op) > 2) continue;
    names += cat(names.empty() ? "" : ", ", samebits::name(op));
  }
  throw usage_error(cat("OP: ", samebits::tensor_file::quote(text), " is not one of ", names));
}

void append_hex(std::string& text, std::size_t code) {
  constexpr std::string_view digits = "0123456789abcdef";
  text += digits[code >> 4 & 15];
  text += digits[code & 15];
}

std::string csv_of(const operation_table& table) {
  std::string text = table.columns == 1 ? "a,result" : "a\\b";
  for (std::size_t b = 0; table.columns > 1 && b < table.columns; ++b) {
    text += ',';
    append_hex(text, b);
  }
  for (std::size_t a = 0; a < table_codes; ++a) {
    text += '\n';
    append_hex(text, a);
    for (std::size_t b = 0; b < table.columns; ++b) {
      text += ',';
      append_hex(text, table.result(a, b));
    }
  }
  return text + "\n";
}

struct named_count {
  std::string_view name;
  std::size_t count;
};

std::vector<named_count> counts_of(const table_summary& summary) {
  std::vector<named_count> counts{{"zero", summary.zero},
                                  {"subnormal", summary.subnormal},
                                  {"normal", summary.normal},
                                  {"infinite", summary.infinite},
                                  {"nan", summary.nan}};
  for (std::size_t f = 0; f < named_flags.size(); ++f) {
    counts.push_back({named_flags[f].name, summary.flags[f]});
  }
  return counts;
}

constexpr std::size_t kinds_of_results = 5;  // the first counts; the others are flags

void write_table_json(const operation_table& table, const samebits::convert_options& rule,
                      output& out) {
  const table_summary summary = summary_of(table);
  const std::vector<named_count> counts = counts_of(summary);
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("format", samebits::name(table.format));
  json.member("op", samebits::name(table.op));
  json.member("round", samebits::name(rule.rounding));
  json.member("overflow", samebits::name(rule.overflow));
  json.member("nan", samebits::name(rule.nan));
  if (rule.rounding == samebits::rounding::stochastic) {
    json.member("seed", rule.random.seed);
    json.member("stream", rule.random.stream);
    json.member("offset", rule.random.offset);
    json.member("random_bits", rule.random.bits);
  }
  for (const bool flags : {false, true}) {
    json.key(flags ? "flags" : "results");
    json.begin_object(json_writer::layout::one_line);
    for (std::size_t i = flags ? kinds_of_results : 0;
         i < (flags ? counts.size() : kinds_of_results); ++i) {
      json.member(counts[i].name, counts[i].count);
    }
    json.end_object();
  }
  json.member("distinct", summary.distinct);
  if (table.columns == 1) {
    json.member("asymmetric", std::nullopt);
  } else {
    json.member("asymmetric", summary.asymmetric);
  }
  json.key("rows");
  json.begin_array();
  for (std::size_t a = 0; a < table_codes; ++a) {
    std::string row;
    for (std::size_t b = 0; b < table.columns; ++b) append_hex(row, table.result(a, b));
    json.value(row);
  }
  json.end_array();
  json.end_object();
  out.write(json.document());
}

void write_table_text(const operation_table& table, const samebits::convert_options& rule,
                      const terminal& term, output& out) {
  const table_summary summary = summary_of(table);
  const std::size_t count = table.results.size();
  out.write(term.painted(paint::heading,
                         cat(samebits::name(table.op), " in ", samebits::name(table.format), ": ",
                             count, table.columns == 1 ? " codes" : " pairs of codes", " (",
                             samebits::name(rule.rounding), ", ", samebits::name(rule.overflow),
                             ", ", samebits::name(rule.nan), ")")) +
            "\n\n");
  const std::vector<named_count> counts = counts_of(summary);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (i == 0) out.write("results\n");
    if (i == kinds_of_results) out.write("flags\n");
    out.write(cat("  ", left(counts[i].name, 16), right(std::to_string(counts[i].count), 6), "  ",
                  right(percent(counts[i].count, count), 9), "\n"));
  }
  out.write(cat("\n", summary.distinct, " different codes among the results"));
  if (table.columns > 1) {
    out.write(summary.asymmetric == 0
                  ? ", a and b can be exchanged"
                  : cat(", ", summary.asymmetric, " pairs differ from the exchanged pair"));
  }
  out.write("\n--csv and --json have the whole table\n");
}

}  // namespace

void run_table(const table_arguments& arguments, output& out) {
  using samebits::format_id;
  const terminal term(arguments.view);
  constexpr std::array formats = {format_id::e4m3, format_id::e5m2};
  const format_id format = format_argument("FORMAT", arguments.format, formats);
  const samebits::operation op = table_operation(arguments.op);
  const samebits::convert_options rule = rule_argument(arguments.rule);
  const operation_table table = table_of(op, format, rule);
  if (arguments.view.json) {
    write_table_json(table, rule, out);
  } else if (arguments.csv) {
    out.write(csv_of(table));
  } else {
    write_table_text(table, rule, term, out);
  }
}

}  // namespace fpinspect
