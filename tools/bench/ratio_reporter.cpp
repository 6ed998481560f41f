// The table of ratios, and what the benchmarks' programs share.
#include "ratio_reporter.hpp"

#include <cstring>
#include <iomanip>
#include <iostream>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "pages.hpp"
#include "samebits/samebits.hpp"

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

baseline measured_by = {"memcpy", [](std::int64_t bytes) -> std::function<void()> {
                          const auto half = static_cast<std::size_t>(bytes / 2);
                          const auto from = std::make_shared<pages>(half);
                          const auto to = std::make_shared<pages>(half);
                          return [=] { std::memcpy(to->data(), from->data(), half); };
                        }};

namespace {

void add_alone(const std::string& name, std::int64_t bytes, std::int64_t elements,
               const start& work) {
  const auto timed = [=](benchmark::State& state) {
    const auto run = work();
    for (auto _ : state) {
      run();
      benchmark::ClobberMemory();
    }
    state.counters["bytes"] = static_cast<double>(bytes);
    state.counters["elements"] = static_cast<double>(elements);
  };
  benchmark::RegisterBenchmark(name.c_str(), timed)->Unit(benchmark::kMillisecond)->UseRealTime();
}

}  // namespace

void add(const std::string& name, std::int64_t bytes, std::int64_t elements, const start& work) {
  static std::set<std::int64_t> added;
  if (added.insert(bytes).second) {
    add_alone(measured_by.name + "/" + std::to_string(bytes), bytes, bytes / 4,
              [bytes] { return measured_by.start(bytes); });
  }
  add_alone(name, bytes, elements, work);
}

void for_each_host_backend(const std::function<void(const std::string&)>& f) {
  for (const backend_info& b : compiled_backends()) {
    if (b.space == memory_space::host && b.supported) f(std::string(b.name));
  }
}

void fill_wide(std::byte* words, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t r = random_word(1, 0, static_cast<std::uint64_t>(i));
    const std::uint32_t word = (r & 0x807FFFFFu) | (127 - 16 + (r >> 8) % 24) << 23;
    std::memcpy(words + 4 * i, &word, sizeof word);
  }
}

int run(int argc, char** argv, void (*add_all)()) {
  std::vector<char*> arguments(argv, argv + argc);
  std::string interleave = "--benchmark_enable_random_interleaving=true";
  std::string repeat = "--benchmark_repetitions=9";
  std::string minimum = "--benchmark_min_time=0.05";
  arguments.insert(arguments.begin() + 1, {interleave.data(), repeat.data(), minimum.data()});
  int given = static_cast<int>(arguments.size());
  benchmark::Initialize(&given, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(given, arguments.data())) return 2;
  add_all();
  ratio_reporter reporter(measured_by.name);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  reporter.print(std::cout);
  return 0;
}

}  // namespace samebits::bench
