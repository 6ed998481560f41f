// Arguments that are no arrays: numbers, flags and names. Bindings take them as nb::handle and read them
// here, so that a value of a wrong type is refused by a sentence that names the argument.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>

#include "samebits/core/format.hpp"
#include "samebits/core/table.hpp"

namespace samebits::python {

namespace nb = nanobind;

/// Returns the integer that an object of Python, NumPy or another library stands for.
///
/// @throws TypeError
nb::object index_of(nb::handle value, const char* name);
/// Raises samebits.InvalidArgument: the value is not in low .. high.
[[noreturn]] void refuse_range(nb::handle value, const char* name, std::int64_t low,
                               std::uint64_t high);

/// Returns an integer of low .. high.
///
/// @throws TypeError or samebits.InvalidArgument
template <class T>
T integer_of(nb::handle value, const char* name, T low = std::numeric_limits<T>::min(),
             T high = std::numeric_limits<T>::max()) {
  const nb::object index = index_of(value, name);
  T result = 0;
  if (nb::try_cast(index, result) && low <= result && result <= high) return result;
  refuse_range(value, name, static_cast<std::int64_t>(low), static_cast<std::uint64_t>(high));
}

/// Returns one number: of Python, or with one element of NumPy or torch; TypeError for others.
double number_of(nb::handle value, const char* name);

/// Returns whether a flag is set: True, False, 1, 0 or a boolean of NumPy; TypeError for others.
bool flag_of(nb::handle value, const char* name);

/// Returns the text of a str, valid as long as the str; no text for None; TypeError for others.
std::string_view text_of(nb::handle text, const char* name);

/// Returns the format of a name or dtype.
///
/// @throws TypeError or samebits.InvalidArgument, naming the argument and listing the formats.
format_id format_named(nb::handle name, const char* argument);
/// Returns the format of a name or dtype; none for None.
inline std::optional<format_id> format_of(nb::handle name, const char* argument = "format") {
  return name.is_none() ? std::nullopt : std::optional(format_named(name, argument));
}

/// Returns a list of made_of(value) for each value.
template <class Values, class MadeOf = std::identity>
nb::list list_of(const Values& values, MadeOf made_of = {}) {
  nb::list list;
  for (const auto& value : values) list.append(made_of(value));
  return list;
}

/// Returns the names of an enum's values in their order.
template <class Enum>
nb::list names_of() {
  return list_of(table_of<Enum>, [](const auto& row) { return row.name; });
}

/// Returns the one of the names that a caller wrote in another case or with hyphens; refuses all other
/// values with the list of names.
nb::object name_among(nb::handle value, const char* argument, const nb::list& names);

/// The names of an enum's values as objects of Python. A literal in Python code is the same object.
template <class Enum>
const std::array<PyObject*, table_of<Enum>.size()>& interned_names() {
  static const auto names = [] {
    std::array<PyObject*, table_of<Enum>.size()> objects = {};
    for (std::size_t i = 0; i < objects.size(); ++i) {
      objects[i] = PyUnicode_InternFromString(table_of<Enum>[i].name.data());
    }
    return objects;
  }();
  return names;
}

/// Returns the name of an enum's value as the object of Python that enumerator_of() knows at once. Every
/// value has a row in the table.
template <class Enum>
nb::object interned_name(Enum value) {
  const auto row = std::find_if(table_of<Enum>.begin(), table_of<Enum>.end(),
                                [&](const auto& r) { return r.value == value; });
  return nb::borrow(interned_names<Enum>()[static_cast<std::size_t>(row - table_of<Enum>.begin())]);
}

/// Returns the value of an enum with a name.
///
/// @throws TypeError or samebits.InvalidArgument, naming the argument and listing the names.
template <class Enum>
Enum enumerator_of(nb::handle value, const char* argument) {
  const auto& known = interned_names<Enum>();
  const auto same = std::find(known.begin(), known.end(), value.ptr());
  if (same != known.end())
    return table_of<Enum>[static_cast<std::size_t>(same - known.begin())].value;
  if (PyUnicode_Check(value.ptr())) {
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
    if (text == nullptr) PyErr_Clear();  // a lone surrogate
    const std::string_view wanted(text, text == nullptr ? 0 : static_cast<std::size_t>(size));
    if (const auto found = find_enumerator<Enum>(wanted)) return *found;
  }
  const nb::object name = name_among(value, argument, names_of<Enum>());
  return *find_enumerator<Enum>(nb::cast<std::string_view>(name));
}

/// Item `i` of a tuple that a Python function made of its arguments; valid as long as the tuple.
inline nb::handle item(nb::handle tuple, int i) { return PyTuple_GetItem(tuple.ptr(), i); }

}  // namespace samebits::python
