// Ratio reporter: collects median times and prints each beside a copy or read of the same bytes.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace samebits::bench {

/// Names are "<what>" for work and "<baseline>/<bytes>" for what it is measured by: copies that
/// read and write as many bytes in all, or reads of as many. Work says its own bytes in the counter
/// "bytes" and its elements in "elements".
class ratio_reporter : public benchmark::ConsoleReporter {
 public:
  explicit ratio_reporter(std::string baseline) : baseline_(std::move(baseline)) {}
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

/// Prepares what is not timed and returns one timed run.
using start = std::function<std::function<void()>()>;

/// What work is measured by: by default "memcpy" of half of the bytes.
struct baseline {
  std::string name;
  std::function<std::function<void()>(std::int64_t bytes)> start;
};
extern baseline measured_by;

/// Adds work, timed by the clock on the wall, and the baseline of as many bytes.
void add(const std::string& name, std::int64_t bytes, std::int64_t elements, const start& work);

/// Calls f(name) for every backend of host memory that this machine supports.
void for_each_host_backend(const std::function<void(const std::string&)>& f);

/// Fills words with binary32 numbers of both signs around 1, spread over 2^-16 to 2^8 as weights,
/// activations and gradients are.
void fill_wide(std::byte* words, std::int64_t count);

/// Runs `add_all` and all work it added, with repetitions in random order, and prints the table. The
/// command line is that of Google Benchmark. Returns the exit status.
int run(int argc, char** argv, void (*add_all)());

}  // namespace samebits::bench
