// Interruption: a call that takes long asks its caller from time to time whether to end, for example
// because of Ctrl-C in Python.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace samebits {

/// Returns 0, or another number if the call is to end. Called on the thread that called the library.
using interrupt_check = std::int32_t (*)();

/// Sets the check of the calls of this thread; null, the default: they run to their end. A check that
/// has ended one call ends all later ones, until this function is called again.
///
/// @returns the check that was set before
interrupt_check set_interrupt_check(interrupt_check check) noexcept;

/// Thrown by a call that the check ended. Its outputs may be partly written.
class interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace samebits
