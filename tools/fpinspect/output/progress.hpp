// A line on a terminal's standard error that says how far a long run is.
#pragma once

#include <chrono>
#include <cstddef>

namespace fpinspect {

/// Shows "12 of 500 tensors" once a run has taken a second, if standard error is a terminal. The
/// destructor removes the line.
class progress {
 public:
  explicit progress(std::size_t total);
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// Says that `done` of the tensors are finished.
  void show(std::size_t done);

 private:
  std::size_t total_;
  bool terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace fpinspect
