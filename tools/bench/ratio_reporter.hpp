// Ratio reporter: collects median times and prints each beside a copy or read of the same bytes.
#pragma once

#include <benchmark/benchmark.h>

#include <iosfwd>
#include <map>
#include <string>
#include <utility>

namespace samebits::bench {

/// Names are "<what>" for work and "<baseline>/<bytes>" for what it is measured by: copies that
/// read and write as many bytes in all, or reads of as many. Work says its own bytes in the counter
/// "bytes" and its elements in "elements".
class ratio_reporter : public benchmark::ConsoleReporter {
 public:
  explicit ratio_reporter(std::string baseline = "memcpy") : baseline_(std::move(baseline)) {}
  void ReportRuns(const std::vector<Run>& runs) override;
  /// The table of medians; call after the benchmarks ran.
  void print(std::ostream& out) const;

 private:
  struct measured {
    double seconds;
    double bytes;
    double elements;
  };
  std::string baseline_;
  std::map<std::string, measured> medians_;
};

}  // namespace samebits::bench
