// Option values and positional arguments that are one of several names.
//
// All functions throw usage_error for another name; the message names `option` and all names.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

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

/// The enumerator with the name `text` among Enum's first `count`, which are numbered from 0.
template <class Enum>
Enum enumerator_argument(std::string_view option, std::string_view text, int count) {
  std::vector<std::string_view> names;
  for (int i = 0; i < count; ++i) names.push_back(name(static_cast<Enum>(i)));
  return static_cast<Enum>(name_index(option, text, names));
}

}  // namespace fpinspect
