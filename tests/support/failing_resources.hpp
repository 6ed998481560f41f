// Threads that cannot be started and memory that cannot be had, on demand: a program that links
// failing_resources.cpp starts threads and allocates through these counters.
#pragma once

namespace samebits::support {

/// While it lives, pthread_create() fails with EAGAIN after `count` successes.
class only_threads {
 public:
  explicit only_threads(int count);
  ~only_threads();
  only_threads(const only_threads&) = delete;
  only_threads& operator=(const only_threads&) = delete;

  /// Attempts that failed.
  [[nodiscard]] int refused() const;
};

/// While it lives, operator new throws std::bad_alloc on all threads but the one that made it.
class no_memory_elsewhere {
 public:
  no_memory_elsewhere();
  ~no_memory_elsewhere();
  no_memory_elsewhere(const no_memory_elsewhere&) = delete;
  no_memory_elsewhere& operator=(const no_memory_elsewhere&) = delete;
};

/// While it lives, operator new throws std::bad_alloc from allocation number `first` on, counted
/// from 0 over all threads.
class only_allocations {
 public:
  explicit only_allocations(int first);
  ~only_allocations();
  only_allocations(const only_allocations&) = delete;
  only_allocations& operator=(const only_allocations&) = delete;

  /// Whether an allocation failed while the last of them lived.
  static bool failed();
};

}  // namespace samebits::support
