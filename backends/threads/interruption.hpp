// When a call that takes long asks its caller whether to end (samebits/interruption.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "backends/dispatch/backend.hpp"
#include "samebits/interruption.hpp"

namespace samebits::backends {

using samebits::interrupted;

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
