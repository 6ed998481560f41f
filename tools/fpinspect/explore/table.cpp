// `fpinspect table`: an operation on all codes of an 8-bit format.
#include "fpinspect/explore/table.hpp"

#include <bitset>
#include <string>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/command.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/formats/describe.hpp"
#include "samebits/array_arithmetic.hpp"
#include "samebits/scalar.hpp"
#include "samebits/view.hpp"

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

samebits::operation operation_argument(std::string_view option, std::string_view text) {
  std::vector<samebits::operation> known;
  for (const auto& row : samebits::table_of<samebits::operation>) {
    if (samebits::operand_count(row.value) <= 2) known.push_back(row.value);
  }
  return value_argument<samebits::operation>(option, text, known);
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

json_object json_of(const operation_table& table, const samebits::convert_options& rule) {
  const table_summary summary = summary_of(table);
  const std::vector<named_count> counts = counts_of(summary);
  json_object results;
  json_object flags;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    (i < kinds_of_results ? results : flags).add(counts[i].name, counts[i].count);
  }
  json_array rows;
  for (std::size_t a = 0; a < table_codes; ++a) {
    std::string row;
    for (std::size_t b = 0; b < table.columns; ++b) append_hex(row, table.result(a, b));
    rows.add(row);
  }
  const bool pairs = table.columns > 1;
  return json_object{{"format", samebits::name(table.format)}, {"op", samebits::name(table.op)}}
      .add(rule_json(rule))
      .add({{"results", results.on_one_line()},
            {"flags", flags.on_one_line()},
            {"distinct", summary.distinct},
            {"asymmetric", pairs ? std::optional(summary.asymmetric) : std::nullopt},
            {"rows", rows}});
}

std::string text_of(const operation_table& table, const samebits::convert_options& rule,
                    const terminal& term) {
  const table_summary summary = summary_of(table);
  const std::size_t count = table.results.size();
  std::string text = term.painted(
      paint::heading,
      cat(samebits::name(table.op), " in ", samebits::name(table.format), ": ", count,
          table.columns == 1 ? " codes" : " pairs of codes", " (", rule_text(rule), ")"));
  text += "\n\n";
  const std::vector<named_count> counts = counts_of(summary);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (i == 0) text += "results\n";
    if (i == kinds_of_results) text += "flags\n";
    text += cat("  ", left(counts[i].name, 16), right(cat(counts[i].count), 6), "  ",
                right(percent(counts[i].count, count), 9), "\n");
  }
  text += cat("\n", summary.distinct, " different codes among the results");
  if (table.columns > 1) {
    text += summary.asymmetric == 0
                ? ", a and b can be exchanged"
                : cat(", ", summary.asymmetric, " pairs differ from the exchanged pair");
  }
  return text + "\n--csv and --json have the whole table\n";
}

class table_command final : public command {
 public:
  void options(option_list& add) override {
    add.required("FORMAT", format_, code_format_argument, "e4m3 or e5m2");
    add.required("OP", op_, operation_argument,
                 "add, sub, mul, div, sqrt, rem, rint, min, max, min_num or max_num");
    add.flag("--csv", csv_, "Write the table: codes in hexadecimal");
    add_rounding_rule(add, rule_);
    add.exclude("--json", {"--csv"});
  }

  void run(const session& s) override {
    const operation_table table = table_of(op_, format_, rule_);
    if (s.json) return s.write_json(json_of(table, rule_));
    s.out.write(csv_ ? csv_of(table) : text_of(table, rule_, s.term));
  }

 private:
  samebits::format_id format_ = samebits::format_id::e4m3;
  samebits::operation op_ = samebits::operation::add;
  bool csv_ = false;
  samebits::convert_options rule_;
};

const registered<table_command> table_here("table",
                                           "Compute an operation for all codes of an 8-bit format",
                                           240);

}  // namespace
}  // namespace fpinspect
