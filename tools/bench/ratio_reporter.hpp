// Ratio reporter: collects median times and prints each beside a memcpy of the same bytes.
#pragma once

#include <benchmark/benchmark.h>

#include <iosfwd>
#include <map>
#include <string>

namespace samebits::bench {

/// Names are "<what>" for work and "memcpy/<bytes>" for copies that read and write as many bytes
/// in all; work says its own bytes in the counter "bytes" and its elements in "elements".
class ratio_reporter : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override;
  /// The table of medians; call after the benchmarks ran.
  void print(std::ostream& out) const;

 private:
  struct measured {
    double seconds;
    double bytes;
    double elements;
  };
  std::map<std::string, measured> medians_;
};

}  // namespace samebits::bench
