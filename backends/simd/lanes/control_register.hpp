// Control register: gives a thread IEEE 754's rounding and subnormals while a kernel runs.
#pragma once

#include <immintrin.h>

namespace samebits::backends {

/// Gives this thread IEEE 754's control register, and the caller's back (docs/decisions/0012).
class ieee_control_register {
 public:
  ieee_control_register() : saved_(_mm_getcsr()) { _mm_setcsr(initial); }
  ~ieee_control_register() { _mm_setcsr(saved_); }
  ieee_control_register(const ieee_control_register&) = delete;
  ieee_control_register& operator=(const ieee_control_register&) = delete;

 private:
  // As a process starts: to nearest, no FTZ, no DAZ, no traps, no flags.
  static constexpr unsigned initial = 0x1F80;
  unsigned saved_;
};

}  // namespace samebits::backends
