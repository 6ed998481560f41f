// Standard output, with every failed write noticed.
#pragma once

#include <string>
#include <string_view>

namespace fpinspect {

/// Collects text and writes it to descriptor 1. Both functions throw output_error, or closed_pipe
/// where the reader has gone; what was not written then is dropped.
class output {
 public:
  void write(std::string_view text);
  void flush();

 private:
  std::string waiting_;
};

}  // namespace fpinspect
