// Control register: sets a thread to IEEE 754 rounding and subnormals while a kernel runs.
#pragma once

#include <immintrin.h>

namespace samebits::backends {

/// Sets this thread's MXCSR to IEEE 754 behaviour and restores the caller's at scope end
/// (docs/decisions/0012).
class ieee_control_register {
 public:
  ieee_control_register() : saved_(_mm_getcsr()) { _mm_setcsr(initial); }
  ~ieee_control_register() { _mm_setcsr(saved_); }
  ieee_control_register(const ieee_control_register&) = delete;
  ieee_control_register& operator=(const ieee_control_register&) = delete;

 private:
  // The state at process start: round to nearest, no FTZ, no DAZ, all exceptions masked, no flags
  // set.
  static constexpr unsigned initial = 0x1F80;
  unsigned saved_;
};

}  // namespace samebits::backends
