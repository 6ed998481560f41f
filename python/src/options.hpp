// Option structs from Python values. The tables of samebits/options.hpp say which options a struct has, in
// which order, and what each is called.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>

#include "arguments.hpp"
#include "host_guard.hpp"
#include "samebits/options.hpp"

namespace samebits::python {

/// Returns a tile, a tuple of two integers.
tile_shape tile_of(nb::handle tile, const char* name);

/// Refuses None as the seed of random bits.
void check_seed(nb::handle seed);

// set_value() sets an option from a value, or raises TypeError or samebits.InvalidArgument.

inline void set_value(nb::handle given, const char* name, bool& value) {
  value = flag_of(given, name);
}
inline void set_value(nb::handle given, const char* name, double& value) {
  value = number_of(given, name);
}
inline void set_value(nb::handle given, const char* name, float& value) {
  const double number = number_of(given, name);
  const host_guard guard;  // a subnormal number stays one
  value = static_cast<float>(number);
}
inline void set_value(nb::handle given, const char* name, format_id& value) {
  value = format_named(given, name);
}
inline void set_value(nb::handle given, const char* name, tile_shape& value) {
  value = tile_of(given, name);
}
template <std::integral Integer>
void set_value(nb::handle given, const char* name, Integer& value) {
  value = integer_of<Integer>(given, name);
}
template <listed_enum Enum>
void set_value(nb::handle given, const char* name, Enum& value) {
  value = enumerator_of<Enum>(given, name);
}
template <class Value>
void set_value(nb::handle given, const char* name, std::optional<Value>& value) {
  if (!given.is_none()) set_value(given, name, value.emplace());
}

/// Sets the option of one row. Python refuses some values before the library does.
template <class Options, class... Path>
void set_row(nb::handle given, const option<Path...>& row, Options& options) {
  using member = std::tuple_element_t<sizeof...(Path) - 1, std::tuple<Path...>>;
  const char* const name = row.name.data();
  auto& value = row.of(options);
  if constexpr (std::is_same_v<member, int random_stream::*>) {
    value = integer_of<int>(given, name, 1, 32);
  } else if constexpr (std::is_same_v<member, int delayed_settings::*>) {
    value = integer_of<int>(given, name, -64, 64);
  } else {
    if constexpr (std::is_same_v<member, std::optional<std::uint64_t> random_stream::*>) {
      if (!given.is_none()) integer_of<std::int64_t>(given, name, 0);
    }
    if (row.name == "seed") check_seed(given);
    set_value(given, name, value);
  }
}

/// Whether a row of a struct is one of its random stream.
template <class Options, class Row>
inline constexpr bool is_random_row = false;
template <class Options, class... Path>
inline constexpr bool is_random_row<Options, option<random_stream Options::*, Path...>> = true;

/// Returns options; `value_of(i, name)` is the value of row i of the table. An option for which it has
/// no value or `...` keeps its default; so do random streams unless the rounding is stochastic.
template <class Options, class Find>
Options options_by(const Find& value_of) {
  Options options;
  int i = 0;
  for_each_option(options, [&](const auto& row, const auto&) {
    const int at = i++;
    if constexpr (is_random_row<Options, std::remove_cvref_t<decltype(row)>>) {
      if (options.rounding != rounding::stochastic) return;
    }
    const nb::handle given = value_of(at, row.name.data());
    if (given.is_valid() && given.ptr() != Py_Ellipsis) set_row(given, row, options);
  });
  return options;
}

/// Returns options of a tuple of values in the order of the table.
template <class Options>
Options options_of(nb::handle values) {
  const auto count = static_cast<int>(PyTuple_Size(values.ptr()));
  return options_by<Options>(
      [&](int i, const char*) { return i < count ? item(values, i) : nb::handle(); });
}

/// Returns options as a dict from names to what a Python caller would pass.
template <class Options>
nb::dict dict_of(const Options& options) {
  nb::dict values;
  const auto add = [&]<class Value>(const auto& row, const Value& value) {
    const nb::str key(row.name.data());
    if constexpr (std::is_same_v<Value, tile_shape>) {
      values[key] = nb::make_tuple(value.rows, value.cols);
    } else if constexpr (listed_enum<Value>) {
      values[key] = interned_name(value);
    } else if constexpr (std::is_enum_v<Value>) {
      values[key] = name(value);
    } else {
      values[key] = value;
    }
  };
  for_each_option(options, add);
  return values;
}

}  // namespace samebits::python
