// A line on a terminal's standard error that says how far a long run is.
#pragma once

#include <chrono>

#include "fpinspect/common.hpp"

namespace fpinspect {

/// "4.0 GB", "250 MB", "8.0 kB", "300 bytes"
std::string bytes_text(double bytes);

/// "34 % of 4.0 GB   0.48 GB/s   6 s left"
///
/// @param share  of the work that is done, 0 .. 1
/// @param bytes  of the files that are read
/// @param seconds  since the start, above 0
std::string progress_text(double share, double bytes, double seconds);

/// Shows the share that is done, throughput and the time left once a run has taken a second, if
/// standard error is a terminal. The destructor removes the line.
class progress {
 public:
  /// @param bytes  of the files that are read
  /// @param work  of the whole run, in any unit
  progress(std::uint64_t bytes, std::uint64_t work);
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// Says that a further part of the work is done.
  void add(std::uint64_t work);

 private:
  using clock = std::chrono::steady_clock;

  double bytes_;
  double work_;
  double done_ = 0;
  bool terminal_;
  bool shown_ = false;
  clock::time_point start_;
  clock::time_point next_;  ///< no line before this time
};

}  // namespace fpinspect
