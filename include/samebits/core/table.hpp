// Tables of enums: one row for each enumerator, from which its name, the count and the search by name
// follow. A header defines table_of below its enum.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace samebits {

/// One enumerator, its name in code, on the command line, in files and in errors, and what it is, for
/// docstrings.
template <class Enum>
struct enum_row {
  Enum value;
  std::string_view name;
  std::string_view doc = {};
};

namespace detail {
void rows_are_not_in_the_order_of_the_enum();  // not constexpr: a call in enum_table does not compile
}

/// Returns the rows as an array. Does not compile unless row i has the enumerator with value i.
template <class Enum, std::size_t Count>
consteval std::array<enum_row<Enum>, Count> enum_table(const enum_row<Enum> (&rows)[Count]) {
  for (std::size_t i = 0; i < Count; ++i) {
    if (static_cast<std::size_t>(rows[i].value) != i)
      detail::rows_are_not_in_the_order_of_the_enum();
  }
  return std::to_array(rows);
}

/// Returns the rows of the enumerators up to `Last` from their names. Does not compile unless there are as
/// many names.
template <auto Last, std::size_t Count>
consteval auto enum_table(const std::string_view (&names)[Count]) {
  static_assert(static_cast<std::size_t>(Last) + 1 == Count);
  std::array<enum_row<decltype(Last)>, Count> rows = {};
  for (std::size_t i = 0; i < Count; ++i) rows[i] = {static_cast<decltype(Last)>(i), names[i]};
  return rows;
}

/// The rows of an enum, in its order; nullptr for an enum without a table.
template <class Enum>
inline constexpr auto table_of = nullptr;

/// An enum with a table.
template <class Enum>
concept listed_enum = requires {
  table_of<Enum>.size();
};

/// The number of enumerators.
template <listed_enum Enum>
inline constexpr int enum_count =
    static_cast<int>(std::tuple_size_v<std::remove_const_t<decltype(table_of<Enum>)>>);

/// Returns the name of an enumerator; "?" for a value without one.
template <listed_enum Enum>
constexpr std::string_view name(Enum value) {
  const auto i = static_cast<std::size_t>(value);
  return i < table_of<Enum>.size() ? table_of<Enum>[i].name : std::string_view("?");
}

/// Returns the enumerator with this name, or nothing.
template <listed_enum Enum>
constexpr std::optional<Enum> find_enumerator(std::string_view text) {
  for (const enum_row<Enum>& row : table_of<Enum>) {
    if (row.name == text) return row.value;
  }
  return std::nullopt;
}

/// Calls `use.operator()<E>()`, E the enumerator as a constant. For the host.
template <class Enum, int Count = enum_count<Enum>, int Position = 0, class Use>
constexpr auto with_enumerator(Enum value, const Use& use) {
  constexpr auto candidate = static_cast<Enum>(Position);
  if constexpr (Position + 1 < Count) {
    if (value != candidate) return with_enumerator<Enum, Count, Position + 1>(value, use);
  }
  return use.template operator()<candidate>();
}

}  // namespace samebits
