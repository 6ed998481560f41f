// Tables: one description of the columns writes the lines of text and the objects of JSON.
#pragma once

#include <type_traits>

#include "fpinspect/output/json.hpp"
#include "fpinspect/output/output.hpp"

namespace fpinspect {

/// Pads a text to a column's width.
inline std::string padded(std::string_view text, int width) {
  return width < 0 ? right(text, static_cast<std::size_t>(-width))
                   : left(text, static_cast<std::size_t>(width));
}

/// A function of a row, made from a lambda without captures.
template <class Result, class Row>
class row_function {
 public:
  constexpr row_function(std::nullptr_t) {}
  template <class Function>
  requires std::is_empty_v<Function>
  constexpr row_function(Function)
      : call_([](const Row& row) { return static_cast<Result>(Function{}(row)); }) {}

  constexpr explicit operator bool() const { return call_ != nullptr; }
  Result operator()(const Row& row) const { return call_(row); }

 private:
  Result (*call_)(const Row&) = nullptr;
};

/// A member of each object, a cell of each line, or both.
template <class Row>
struct column {
  std::string_view key;      ///< of the member; empty: not in JSON
  std::string_view heading;  ///< of the cells, in one line or two; empty, and no text: not in text
  int width;                 ///< of the cells; negative: right-aligned; 0: as wide as the text
  row_function<json_value, Row> value;            ///< null for cells alone
  row_function<std::string, Row> text = nullptr;  ///< null: the value's

  [[nodiscard]] bool is_shown() const { return !heading.empty() || text; }
  [[nodiscard]] std::string cell(const Row& row) const {
    return padded(text ? text(row) : value(row).text(), width);
  }
};

// In the functions below, `columns` is any sequence of column<Row>.

/// The cells of one line, with a newline. Blanks at its end are kept.
template <class Columns, class Row>
std::string table_line(const Columns& columns, const Row& row) {
  std::string line;
  for (const auto& one : columns) {
    if (one.is_shown()) line += one.cell(row);
  }
  return line + "\n";
}

/// The line of headings, with a newline; two without blanks at their ends if any heading has two.
template <class Columns>
std::string table_heading(const Columns& columns) {
  std::string first;
  std::string second;
  for (const auto& one : columns) {
    if (!one.is_shown()) continue;
    const std::vector<std::string_view> lines = split(one.heading, '\n');
    first += padded(lines.front(), one.width);
    second += padded(lines.size() == 1 ? "" : lines.back(), one.width);
  }
  second = without_end_blanks(second);
  if (second.empty()) return first + "\n";
  return cat(without_end_blanks(first), "\n", second, "\n");
}

template <class Columns, class Rows>
std::string table_lines(const Columns& columns, const Rows& rows) {
  std::string text;
  for (const auto& row : rows) text += table_line(columns, row);
  return text;
}

/// Headings and rows.
template <class Columns, class Rows>
std::string table_text(const Columns& columns, const Rows& rows, const terminal& term) {
  return term.painted(paint::heading, table_heading(columns)) + table_lines(columns, rows);
}

/// An object for each row, each on `lines` or on one line.
template <class Columns, class Rows>
json_array table_json(const Columns& columns, const Rows& rows, bool one_line = false) {
  return json_rows(rows, [&](const auto& row) {
    json_object object;
    for (const auto& one : columns) {
      if (!one.key.empty()) object.add(one.key, one.value(row));
    }
    return one_line ? object.on_one_line() : object;
  });
}

}  // namespace fpinspect
