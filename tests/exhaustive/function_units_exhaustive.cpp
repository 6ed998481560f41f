// The function units on all 2^32 operands:
//
//   function_units_exhaustive [THREADS]
//
// Compares the sum of each instruction's results with the sum of the program that was compared with
// the cards. Prints one line per instruction; the exit status is 1 if a sum differs and 2 for a bad
// command line.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "support/function_sum.hpp"
#include "support/function_units.hpp"

namespace samebits {
namespace {

/// The threads' operands are interleaved: thread t has t, t + threads, ...
std::uint64_t sum_on_threads(const support::unit_function& f, unsigned threads) {
  std::vector<std::uint64_t> parts(threads);
  std::vector<std::thread> running;
  for (unsigned t = 0; t < threads; ++t) {
    running.emplace_back([&, t] { parts[t] = support::function_sum(f.model, threads, t); });
  }
  std::uint64_t sum = 0;
  for (unsigned t = 0; t < threads; ++t) {
    running[t].join();
    sum += parts[t];
  }
  return sum;
}

std::optional<int> main_of(int argc, char** argv) {
  const unsigned long threads = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  if (argc > 2 || threads == 0 || threads > 1024) return std::nullopt;
  bool all_equal = true;
  for (const support::unit_function& f : support::unit_functions) {
    const std::uint64_t sum = sum_on_threads(f, static_cast<unsigned>(threads));
    all_equal = all_equal && sum == f.sum;
    std::printf("%-22s sum %016llX, expected %016llX\n", f.name,
                static_cast<unsigned long long>(sum), static_cast<unsigned long long>(f.sum));
    std::fflush(stdout);
  }
  std::printf("%s\n", all_equal ? "PASSED" : "FAILED");
  return all_equal ? 0 : 1;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  const auto status = samebits::main_of(argc, argv);
  if (!status) std::fprintf(stderr, "usage: function_units_exhaustive [THREADS]\n");
  return status.value_or(2);
}
