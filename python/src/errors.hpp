// Raises exceptions of the library as the exceptions of samebits.errors.
#pragma once

#include <nanobind/nanobind.h>

#include <initializer_list>
#include <string>

namespace samebits::python {

namespace nb = nanobind;

/// The name of an argument in the C++ API, and in the Python function that passes it.
struct argument_name {
  const char* cpp;
  const char* python;
};
using argument_names = std::initializer_list<argument_name>;

/// Raises the C++ exception that is being handled as a Python exception; a Python exception passes
/// through. Messages of the library begin with the name of an argument: it becomes the caller's name,
/// without the struct that holds it in C++. `names` has the names that differ in this function alone.
/// The GIL must be held.
[[noreturn]] void raise_current(argument_names names = {});

/// Raises samebits.InvalidArgument.
[[noreturn]] void raise_invalid(const std::string& message);
/// Raises TypeError.
[[noreturn]] void raise_type(const std::string& message);
/// Raises samebits.InternalError: an error in the package itself.
[[noreturn]] void raise_internal(const std::string& message);

}  // namespace samebits::python
