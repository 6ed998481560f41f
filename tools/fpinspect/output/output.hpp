// Standard output or standard error; reports every failed write.
#pragma once

#include <string>
#include <string_view>

namespace fpinspect {

/// Collects text and writes it to a file descriptor. Both functions throw output_error, or
/// closed_pipe if the reader has closed the pipe. Text that was not written by then is discarded.
class output {
 public:
  /// @param descriptor  STDOUT_FILENO, or STDERR_FILENO for a report if standard output carries
  ///   data
  explicit output(int descriptor) : descriptor_(descriptor) {}

  void write(std::string_view text);
  void flush();

 private:
  int descriptor_;
  std::string waiting_;
};

}  // namespace fpinspect
