// Functions on all 2^32 operands of binary32, each function's results as one sum:
//
//   function_sums units|cuda_13_0|arrays|exact [THREADS [BACKEND]]
//
// units      function units of GPUs, one value at a time by the definition in numerics/
// cuda_13_0  CUDA's functions, one value at a time by the definition in numerics/
// arrays     CUDA's functions by evaluate()
// exact      correctly rounded functions and gradients by evaluate() and evaluate_gradient()
//
// BACKEND is for `arrays` and `exact`; default: the widest of this machine. The expected sums are
// those of programs that were compared with GPUs; for `exact`, those of results proved by MPFR.
//
// Prints one line per function. The exit status is 1 if a sum differs, 2 for a bad command line and
// 77 if this machine does not support the backend.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exhaustive/sweep_program.hpp"
#include "numerics/functions/exact_functions.hpp"
#include "samebits/evaluate.hpp"
#include "samebits/types.hpp"
#include "support/cuda_functions.hpp"
#include "support/function_sum.hpp"
#include "support/function_units.hpp"

namespace samebits {
namespace {

/// The functions of evaluate() in the order of support::cuda_functions.
constexpr function array_functions[] = {
    function::exp,   function::exp2, function::expm1, function::log,      function::log2,
    function::log1p, function::tanh, function::erf,   function::rsqrt,    function::log10,
    function::erfc,  function::sin,  function::cos,   function::fast_exp, function::fast_log};
static_assert(std::size(array_functions) == std::size(support::cuda_functions));

/// The sum of all results y of call(x, y), which computes 2^20 of them.
template <class Call>
std::uint64_t sum_of_arrays(const Call& call) {
  std::vector<float> x(1 << 20), y(x.size());
  std::uint64_t sum = 0;
  for (std::uint64_t first = 0; first < std::uint64_t{1} << 32; first += x.size()) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(first + i));
    }
    call(x, y);
    for (std::size_t i = 0; i < x.size(); ++i) {
      sum += std::uint64_t{std::bit_cast<std::uint32_t>(y[i])} * (2 * (first + i) + 1);
    }
  }
  return sum;
}

/// Prints a sum; returns whether the sum is as expected.
bool is_expected(std::string_view name, std::uint64_t sum, std::uint64_t expected) {
  std::printf("%-22s sum %016llX, expected %016llX\n", std::string(name).c_str(),
              static_cast<unsigned long long>(sum), static_cast<unsigned long long>(expected));
  std::fflush(stdout);
  return sum == expected;
}

bool exact_sums_are_equal(const executor& where) {
  const std::vector<float> ones(1 << 20, 1.0f);  // the gradient of a result
  bool equal = true;
  for (const numerics::real::exact_row& row : numerics::real::exact_rows) {
    const std::uint64_t sum = sum_of_arrays([&](const auto& x, auto& y) {
      if (!row.gradient) return evaluate(row.of, view_of(x), view_of(y), {}, where);
      evaluate_gradient(row.of, view_of(ones), view_of(x), view_of(y), {}, where);
    });
    const std::string text = std::string(name(row.of)) + (row.gradient ? " gradient" : "");
    equal = is_expected(text, sum, row.sum) && equal;
  }
  return equal;
}

bool array_sums_are_equal(const executor& where) {
  bool equal = true;
  for (std::size_t i = 0; i < std::size(array_functions); ++i) {
    const std::uint64_t sum = sum_of_arrays([&](const auto& x, auto& y) {
      evaluate(array_functions[i], view_of(x), view_of(y), {.rule = function_rule::cuda_13_0},
               where);
    });
    const support::summed_function& f = support::cuda_functions[i];
    equal = is_expected(f.name, sum, f.sum) && equal;
  }
  return equal;
}

/// The threads' operands are interleaved: thread t has t, t + threads, ...
bool scalar_sums_are_equal(std::span<const support::summed_function> functions,
                           std::uint64_t threads) {
  bool equal = true;
  for (const support::summed_function& f : functions) {
    const std::uint64_t sum = support::sum_on_threads(threads, [&](std::uint64_t thread) {
      return support::function_sum(f.model, threads, thread);
    });
    equal = is_expected(f.name, sum, f.sum) && equal;
  }
  return equal;
}

std::optional<bool> agrees(const support::command_line& words) {
  if (words.empty() || words.size() > 3) return std::nullopt;
  const std::uint64_t threads = words.number(1, 1);
  if (threads == 0 || threads > 1024) return std::nullopt;
  const std::string backend = words.size() > 2 ? words[2] : "";
  const executor where = {.backend = backend, .threads = static_cast<int>(threads)};
  if (words[0] == "arrays") return array_sums_are_equal(where);
  if (words[0] == "exact") return exact_sums_are_equal(where);
  if (words.size() > 2) return std::nullopt;
  if (words[0] == "units") return scalar_sums_are_equal(support::unit_functions, threads);
  if (words[0] == "cuda_13_0") return scalar_sums_are_equal(support::cuda_functions, threads);
  return std::nullopt;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  return samebits::support::run_program(
      argc, argv, "function_sums units|cuda_13_0|arrays|exact [THREADS [BACKEND]]",
      samebits::agrees);
}
