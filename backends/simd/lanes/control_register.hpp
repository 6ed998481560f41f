// Control register: sets a thread to IEEE 754 rounding and subnormals while a kernel runs.
#pragma once

#include <immintrin.h>

#include "samebits/core/flags.hpp"

namespace samebits::backends {

/// Sets this thread's MXCSR to IEEE 754 behaviour and restores the caller's at scope end
/// (docs/decisions/0012).
class ieee_control_register {
 public:
  ieee_control_register() : saved_(_mm_getcsr()) { _mm_setcsr(initial); }
  ~ieee_control_register() { _mm_setcsr(saved_); }
  ieee_control_register(const ieee_control_register&) = delete;
  ieee_control_register& operator=(const ieee_control_register&) = delete;

  /// The exceptions that instructions of this thread raised in this scope.
  [[nodiscard]] flags raised() const {
    // MXCSR's lowest bits: invalid, subnormal operand, division by zero, overflow, underflow, inexact
    const unsigned found = _mm_getcsr();
    return static_cast<flags>((found & 1u) | (found >> 1 & 0x1Eu));
  }

 private:
  // The state at process start: round to nearest, no FTZ, no DAZ, all exceptions masked, no flags
  // set.
  static constexpr unsigned initial = 0x1F80;
  unsigned saved_;
};

}  // namespace samebits::backends
