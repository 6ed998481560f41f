// The table of ratios.
#include "ratio_reporter.hpp"

#include <iomanip>
#include <iostream>
#include <ostream>
#include <string>
#include <vector>

namespace samebits::bench {

void ratio_reporter::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (run.aggregate_name != "median") continue;
    const auto counter = [&](const char* name) {
      const auto found = run.counters.find(name);
      return found == run.counters.end() ? 0.0 : static_cast<double>(found->second);
    };
    medians_[run.run_name.function_name] = {
        run.GetAdjustedRealTime() / benchmark::GetTimeUnitMultiplier(run.time_unit),
        counter("bytes"), counter("elements")};
  }
}

void ratio_reporter::print(std::ostream& out) const {
  const auto baseline_seconds = [&](double bytes) {
    for (const auto& [name, m] : medians_) {
      if (name.starts_with(baseline_ + "/") && m.bytes == bytes) return m.seconds;
    }
    return 0.0;
  };
  out << "| work | ms | Gelem/s | GB/s | time / " << baseline_
      << " of the same bytes |\n|---|---|---|---|---|\n"
      << std::fixed;
  for (const auto& [name, m] : medians_) {
    const double baseline = baseline_seconds(m.bytes);
    out << "| " << name << " | " << std::setprecision(2) << m.seconds * 1e3 << " | "
        << m.elements / m.seconds / 1e9 << " | " << std::setprecision(1)
        << m.bytes / m.seconds / 1e9 << " | " << std::setprecision(2);
    if (baseline > 0) out << m.seconds / baseline;
    out << " |\n";
  }
}

bool initialize(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  std::string interleave = "--benchmark_enable_random_interleaving=true";
  std::string repeat = "--benchmark_repetitions=9";
  std::string minimum = "--benchmark_min_time=0.05";
  arguments.insert(arguments.begin() + 1, {interleave.data(), repeat.data(), minimum.data()});
  int given = static_cast<int>(arguments.size());
  benchmark::Initialize(&given, arguments.data());
  return !benchmark::ReportUnrecognizedArguments(given, arguments.data());
}

void set_counters(benchmark::State& state, std::int64_t bytes, std::int64_t elements) {
  state.counters["bytes"] = static_cast<double>(bytes);
  state.counters["elements"] = static_cast<double>(elements);
}

void run_all(const std::string& baseline) {
  ratio_reporter reporter(baseline);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  reporter.print(std::cout);
}

}  // namespace samebits::bench
