// Ratio reporter: collects median times and prints each beside a copy or read of the same bytes.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
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

// What the benchmarks' programs share.

/// Google Benchmark with repetitions of all work in random order; false for a bad command line.
bool initialize(int argc, char** argv);

/// Adds work, timed by the clock on the wall.
template <class... Arguments>
void add(const std::string& name, const Arguments&... arguments) {
  benchmark::RegisterBenchmark(name.c_str(), arguments...)
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

/// Sets the counters that ratio_reporter reads.
void set_counters(benchmark::State& state, std::int64_t bytes, std::int64_t elements);

/// Runs all work and prints the table.
void run_all(const std::string& baseline);

}  // namespace samebits::bench
