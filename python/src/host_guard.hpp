// Sets the processor to IEEE 754 arithmetic for the time of a call.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace samebits::python {

/// Returns the thread's SSE control register; 0 on other processors. For tests.
inline unsigned get_mxcsr() {
#if defined(__SSE2__)
  return _mm_getcsr();
#else
  return 0;
#endif
}

/// Sets the thread's SSE control register. For tests.
inline void set_mxcsr([[maybe_unused]] unsigned value) {
#if defined(__SSE2__)
  _mm_setcsr(value);
#endif
}

/// Sets the thread's SSE control register to its default. The destructor restores the old value.
///
/// Other code sets flush-to-zero or denormals-are-zero in the process: extensions built with
/// -ffast-math, torch.set_flush_denormal(True). Library threads inherit the register of
/// the thread that starts them.
class host_guard {
 public:
  host_guard() {
#if defined(__SSE2__)
    before_ = _mm_getcsr();
    if (before_ != defaults) _mm_setcsr(defaults);
#endif
  }
  ~host_guard() {
#if defined(__SSE2__)
    if (_mm_getcsr() != before_) _mm_setcsr(before_);
#endif
  }
  host_guard(const host_guard&) = delete;
  host_guard& operator=(const host_guard&) = delete;

 private:
  static constexpr unsigned defaults = 0x1F80;  // all exceptions masked, to nearest, no FTZ, no DAZ
  [[maybe_unused]] unsigned before_ = defaults;
};

}  // namespace samebits::python
