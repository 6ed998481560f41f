// Standard output or standard error, with every failed write noticed.
#pragma once

#include <string>
#include <string_view>

namespace fpinspect {

/// Collects text and writes it to a descriptor. Both functions throw output_error, or closed_pipe
/// where the reader has gone; what was not written then is dropped.
class output {
 public:
  /// descriptor  STDOUT_FILENO, or STDERR_FILENO for a report whose place standard output holds
  /// data
  explicit output(int descriptor) : descriptor_(descriptor) {}

  void write(std::string_view text);
  void flush();

 private:
  int descriptor_;
  std::string waiting_;
};

}  // namespace fpinspect
