// `fpinspect table`: an operation on all codes of an 8-bit format.
#include <bitset>

#include "fpinspect/cli/command.hpp"
#include "fpinspect/formats/describe.hpp"
#include "samebits/array_arithmetic.hpp"
#include "samebits/view.hpp"

namespace fpinspect {
namespace {

constexpr std::size_t table_codes = 256;

/// Results for all codes a, and for all pairs of codes (a, b).
struct operation_table {
  operation op;
  format_id format;
  std::size_t columns;                ///< 256, or 1 for an operation with one operand
  std::vector<std::uint8_t> results;  ///< of (a, b) at index a * columns + b
  std::vector<flags> raised;

  [[nodiscard]] std::uint8_t result(std::size_t a, std::size_t b) const {
    return results[a * columns + b];
  }
};

/// @param op  an operation with one or two operands
/// @param format  e4m3 or e5m2
operation_table computed_table(operation op, format_id format, const convert_options& rule) {
  const std::size_t columns = operand_count(op) == 1 ? 1 : table_codes;
  operation_table table{op, format, columns, {}, {}};
  table.results.resize(table_codes * columns);
  table.raised.resize(table_codes * columns);
  std::array<std::uint8_t, table_codes> codes{};
  for (std::size_t i = 0; i < table_codes; ++i) codes[i] = static_cast<std::uint8_t>(i);
  const auto rows = static_cast<std::int64_t>(table_codes);
  const auto cols = static_cast<std::int64_t>(columns);
  const const_matrix_view a{codes.data(), format, rows, cols, 1, 0};
  const const_matrix_view b{codes.data(), format, rows, cols, 0, 1};
  const matrix_view out =
      view_of_codes(format, static_cast<void*>(table.results.data()), rows, cols);
  compute_options options{rule.rounding, rule.overflow, rule.nan, rule.random};
  options.random.pitch = cols;
  samebits::compute_with_flags(op, {a, b}, out, options, {table.raised.data(), cols},
                               {.backend = "reference"});
  return table;
}

constexpr auto& classes = table_of<number_class>;

struct table_summary {
  std::array<std::uint64_t, classes.size()> results{};  ///< of each class
  flag_counts flags{};
  std::size_t distinct = 0;    ///< different codes among the results
  std::size_t asymmetric = 0;  ///< pairs (a, b) whose result differs from that of (b, a)
};

table_summary summary_of(const operation_table& table) {
  table_summary summary;
  std::bitset<table_codes> seen;
  for (std::size_t i = 0; i < table.results.size(); ++i) {
    const std::uint8_t code = table.results[i];
    seen.set(code);
    ++summary.results[static_cast<std::size_t>(classify(table.format, code))];
    count_flags(summary.flags, table.raised[i]);
    if (table.columns == 1) continue;
    const std::size_t row = i / table.columns;
    const std::size_t column = i % table.columns;
    if (code != table.result(column, row)) ++summary.asymmetric;
  }
  summary.distinct = seen.count();
  return summary;
}

operation operation_argument(std::string_view option, std::string_view text) {
  std::vector<operation> known;
  for (const auto& row : table_of<operation>) {
    if (operand_count(row.value) <= 2) known.push_back(row.value);
  }
  return value_argument<operation>(option, text, known);
}

/// Two hexadecimal digits.
std::string digits_of(const operation_table& table, std::size_t code) {
  return code_text(table.format, code).substr(2);
}

std::string csv_of(const operation_table& table) {
  std::string text = table.columns == 1 ? "a,result" : "a\\b";
  for (std::size_t b = 0; table.columns > 1 && b < table.columns; ++b) {
    text += "," + digits_of(table, b);
  }
  for (std::size_t a = 0; a < table_codes; ++a) {
    text += "\n" + digits_of(table, a);
    for (std::size_t b = 0; b < table.columns; ++b) {
      text += "," + digits_of(table, table.result(a, b));
    }
  }
  return text + "\n";
}

json_object json_of(const operation_table& table, const convert_options& rule) {
  const table_summary summary = summary_of(table);
  json_array rows;
  for (std::size_t a = 0; a < table_codes; ++a) {
    std::string row;
    for (std::size_t b = 0; b < table.columns; ++b) row += digits_of(table, table.result(a, b));
    rows.add(row);
  }
  const bool pairs = table.columns > 1;
  return json_object{{"format", name(table.format)}, {"op", name(table.op)}}
      .add(rule_json(rule))
      .add({{"results", counts_json(classes, summary.results)},
            {"flags", counts_json(named_flags, summary.flags)},
            {"distinct", summary.distinct},
            {"asymmetric", pairs ? std::optional(summary.asymmetric) : std::nullopt},
            {"rows", rows}});
}

std::string text_of(const operation_table& table, const convert_options& rule,
                    const terminal& term) {
  const table_summary summary = summary_of(table);
  const std::size_t count = table.results.size();
  std::string text =
      term.painted(paint::heading, table.op, " in ", table.format, ": ", count,
                   table.columns == 1 ? " codes" : " pairs of codes", " (", rule_text(rule), ")");
  text += "\n\n";
  const auto add = [&](std::string_view heading, const auto& names,
                       std::span<const std::uint64_t> counts) {
    text += cat(heading, "\n");
    for (std::size_t i = 0; i < counts.size(); ++i) {
      text += cat("  ", left(names[i].name, 16), right(cat(counts[i]), 6), "  ",
                  right(percent(counts[i], count), 9), "\n");
    }
  };
  add("results", classes, summary.results);
  add("flags", named_flags, summary.flags);
  text += cat("\n", summary.distinct, " different codes among the results");
  if (table.columns > 1) {
    text += summary.asymmetric == 0
                ? ", a and b can be exchanged"
                : cat(", ", summary.asymmetric, " pairs differ from the exchanged pair");
  }
  return text + "\n--csv and --json have the whole table\n";
}

run_function table_command(option_list& add) {
  auto& format = add.required("FORMAT", one_of({format_id::e4m3, format_id::e5m2}), "e4m3 or e5m2");
  auto& op = add.required("OP", operation_argument,
                          "add, sub, mul, div, sqrt, rem, rint, min, max, min_num or max_num");
  auto& csv = add.flag("--csv", "Write the table: codes in hexadecimal");
  auto& rule = add_rounding_rule(add);
  add.exclude("--json", {"--csv"});
  return [&](const session& s) {
    const operation_table table = computed_table(op, format, rule);
    s.write(json_of(table, rule), csv ? csv_of(table) : text_of(table, rule, s.term));
  };
}

const registered table_here("table", "Compute an operation for all codes of an 8-bit format", 240,
                            table_command);

}  // namespace
}  // namespace fpinspect
