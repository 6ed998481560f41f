// Function units and CUDA's functions on all 2^32 operands:
//
//   function_sums units|cuda_13_0 [THREADS]
//
// Compares the sum of each function's results with the sum of a program that was compared with
// GPUs. Prints one line per function; the exit status is 1 if a sum differs and 2 for a bad command
// line.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "support/cuda_functions.hpp"
#include "support/function_sum.hpp"
#include "support/function_units.hpp"

namespace samebits {
namespace {

/// The threads' operands are interleaved: thread t has t, t + threads, ...
std::uint64_t sum_on_threads(const support::summed_function& f, unsigned threads) {
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
  if (argc != 2 && argc != 3) return std::nullopt;
  const std::string which = argv[1];
  const unsigned long threads = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1;
  if ((which != "units" && which != "cuda_13_0") || threads == 0 || threads > 1024) {
    return std::nullopt;
  }
  std::span<const support::summed_function> functions = support::unit_functions;
  if (which == "cuda_13_0") functions = support::cuda_functions;
  bool all_equal = true;
  for (const support::summed_function& f : functions) {
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
  if (!status) std::fprintf(stderr, "usage: function_sums units|cuda_13_0 [THREADS]\n");
  return status.value_or(2);
}
