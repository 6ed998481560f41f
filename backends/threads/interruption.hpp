// Interruption: a call that takes long asks its caller from time to time whether to end, for example
// because of Ctrl-C in Python.
#pragma once

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>

#include "backends/dispatch/backend.hpp"

namespace samebits::backends {

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

/// The interruption of one operation that runs on several threads. Must be made on the thread that
/// called the library.
class interruption {
 public:
  interruption();

  /// Whether the caller has a check.
  [[nodiscard]] bool possible() const { return possible_; }

  /// Throws `interrupted` if the operation is to end. The caller's thread asks the check, at most ten
  /// times a second; the other threads follow.
  void poll() {
    if (possible_) ask();
  }

  /// Calls part(range) for [range.begin, range.end): at once if no check is set, else in blocks.
  template <class Part>
  void for_each_block(element_range range, std::int64_t block, const Part& part) {
    if (!possible_) return part(range);
    for (std::int64_t at = range.begin; at < range.end;) {
      poll();
      const std::int64_t end = range.end - at < block ? range.end : at + block;
      part(element_range{at, end});
      at = end;
    }
  }

 private:
  void ask();

  bool possible_;
  std::atomic<bool> ended_ = false;
  std::thread::id caller_;
};

}  // namespace samebits::backends
