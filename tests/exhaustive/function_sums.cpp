// Function units and CUDA's functions on all 2^32 operands:
//
//   function_sums units|cuda_13_0|arrays [THREADS]
//
// `units` and `cuda_13_0` compute one value at a time by the definition; `arrays` computes CUDA's
// functions by evaluate(), on the widest backend of this machine.
//
// Compares the sum of each function's results with the sum of a program that was compared with
// GPUs. Prints one line per function; the exit status is 1 if a sum differs and 2 for a bad command
// line.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "samebits/evaluate.hpp"
#include "samebits/types.hpp"
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

/// The functions of evaluate() in the order of support::cuda_functions.
constexpr function array_functions[] = {
    function::exp,   function::exp2, function::expm1, function::log,      function::log2,
    function::log1p, function::tanh, function::erf,   function::rsqrt,    function::log10,
    function::erfc,  function::sin,  function::cos,   function::fast_exp, function::fast_log};
static_assert(std::size(array_functions) == std::size(support::cuda_functions));

/// The sum of a function's results, computed in arrays of 2^20 operands.
std::uint64_t sum_of_arrays(function f, unsigned threads) {
  std::vector<float> x(1 << 20), y(x.size());
  std::uint64_t sum = 0;
  for (std::uint64_t first = 0; first < std::uint64_t{1} << 32; first += x.size()) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(first + i));
    }
    evaluate(f, view_of(x), view_of(y), {.rule = function_rule::cuda_13_0},
             {.threads = static_cast<int>(threads)});
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum += std::uint64_t{std::bit_cast<std::uint32_t>(y[i])} * (2 * (first + i) + 1);
    }
  }
  return sum;
}

std::optional<int> main_of(int argc, char** argv) {
  if (argc != 2 && argc != 3) return std::nullopt;
  const std::string which = argv[1];
  const unsigned long threads = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1;
  const bool arrays = which == "arrays";
  if ((which != "units" && which != "cuda_13_0" && !arrays) || threads == 0 || threads > 1024) {
    return std::nullopt;
  }
  std::span<const support::summed_function> functions = support::unit_functions;
  if (which != "units") functions = support::cuda_functions;
  bool all_equal = true;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const support::summed_function& f = functions[i];
    const auto workers = static_cast<unsigned>(threads);
    const std::uint64_t sum =
        arrays ? sum_of_arrays(array_functions[i], workers) : sum_on_threads(f, workers);
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
  if (!status) std::fprintf(stderr, "usage: function_sums units|cuda_13_0|arrays [THREADS]\n");
  return status.value_or(2);
}
