// Option values and positional arguments that are one of several names.
//
// All functions throw usage_error for another name; the message names `option` and all names.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/core/table.hpp"

namespace fpinspect {

/// The index of `text` in `names`.
std::size_t name_index(std::string_view option, std::string_view text,
                       std::span<const std::string_view> names);

/// The row of a table whose member `name` is `text`.
template <class Row>
const Row& row_argument(std::string_view option, std::string_view text,
                        std::span<const Row> table) {
  std::vector<std::string_view> names;
  for (const Row& row : table) names.emplace_back(row.name);
  return table[name_index(option, text, names)];
}

/// The value in `among` for which name(value) is `text`.
template <class Value>
Value value_argument(std::string_view option, std::string_view text, std::span<const Value> among) {
  std::vector<std::string_view> names;
  for (const Value value : among) names.push_back(name(value));
  return among[name_index(option, text, names)];
}

/// The enumerator with the name `text`.
template <samebits::listed_enum Enum>
Enum enumerator_argument(std::string_view option, std::string_view text) {
  return row_argument<samebits::enum_row<Enum>>(option, text, samebits::table_of<Enum>).value;
}

/// The names of an enum: "a, b, c", or "a, b or c" with " or " before the last one.
template <samebits::listed_enum Enum>
std::string names_of(std::string_view before_last = ", ") {
  std::string names;
  for (const samebits::enum_row<Enum>& row : samebits::table_of<Enum>) {
    const bool last = &row == &samebits::table_of<Enum>.back();
    if (!names.empty()) names += last ? before_last : ", ";
    names += row.name;
  }
  return names;
}

}  // namespace fpinspect
