// Turns status codes of the C functions into the exceptions of samebits.errors.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

namespace samebits::python {

namespace nb = nanobind;

/// Raises the exception of a status, with the message of samebits_last_error(). The GIL must be
/// held.
[[noreturn]] void raise_status(std::int32_t status);

/// Raises the exception of a status unless it is success. The GIL must be held.
inline void check(std::int32_t status) {
  if (status != 0) raise_status(status);
}

/// Raises samebits.InvalidArgument.
[[noreturn]] void raise_invalid(const std::string& message);
/// Raises TypeError.
[[noreturn]] void raise_type(const std::string& message);
/// Raises samebits.InternalError: an error in the package itself.
[[noreturn]] void raise_internal(const std::string& message);

}  // namespace samebits::python
