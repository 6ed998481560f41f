// function_bench: functions of rule `exact` beside the C library's, on one thread and from the cache.
//
//   function_bench [BACKEND]
//
// Prints, for each function:
// - nanoseconds an element: 2048 elements of fp32 into fp32 and into bf16, 2^20 elements of bf16 into
//   bf16, the C library's scalar function, and the AVX-512 functions of SLEEF and libmvec;
// - how many of 2^20 results are not correctly rounded: the C library's, those of its binary64 function
//   rounded to fp32, SLEEF's, and those of the rules cuda_13_0 and torch_2_11.
// Operands are spread evenly over the binades from 2^-12 to 2^4, of both signs where the function has
// them. SLEEF's and libmvec's columns need a build with SLEEF (libsleef-dev).
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "samebits/convert.hpp"
#include "samebits/error.hpp"
#include "samebits/evaluate.hpp"
#include "samebits/types.hpp"
#ifdef SAMEBITS_BENCH_SLEEF
#include "peers/sleef_peer.hpp"
#endif

namespace {

using samebits::evaluate;
using samebits::function;
using samebits::function_rule;
using samebits::view_of;

struct row {
  function f;
  float (*library)(float);  ///< null: the C library has no such function
  double (*binary64)(double);
  bool positive;  ///< operands above 0 alone
};
const row rows[] = {
    {function::exp, std::exp, std::exp, false},
    {function::exp2, std::exp2, std::exp2, false},
    {function::expm1, std::expm1, std::expm1, false},
    {function::log, std::log, std::log, true},
    {function::log2, std::log2, std::log2, true},
    {function::log1p, std::log1p, std::log1p, true},
    {function::tanh, std::tanh, std::tanh, false},
    {function::erf, std::erf, std::erf, false},
    {function::rsqrt, nullptr, nullptr, true},
    {function::reciprocal, nullptr, nullptr, false},
    {function::sigmoid, nullptr, nullptr, false},
    {function::silu, nullptr, nullptr, false},
    {function::gelu, nullptr, nullptr, false},
    {function::gelu_tanh, nullptr, nullptr, false},
    {function::softplus, nullptr, nullptr, false},
};

std::vector<float> operands(std::size_t count, bool positive) {
  std::vector<float> x(count);
  std::uint64_t state = 1;
  for (float& value : x) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto exponent = static_cast<std::uint32_t>(127 - 12 + (state >> 60));
    const auto sign = positive ? 0u : static_cast<std::uint32_t>(state >> 59 & 1) << 31;
    value = std::bit_cast<float>(sign | exponent << 23 |
                                 (static_cast<std::uint32_t>(state >> 33) & 0x7FFFFF));
  }
  return x;
}

/// Nanoseconds an element: the best of 100 runs over `count` elements.
template <class Run>
double time_of(const Run& run, std::size_t count = 2048) {
  double best = 1e9;
  for (int i = 0; i < 100; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count() / static_cast<double>(count));
  }
  return best;
}

std::string differing(const std::vector<float>& x, const std::vector<float>& expected) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    count += std::bit_cast<std::uint32_t>(x[i]) != std::bit_cast<std::uint32_t>(expected[i]);
  }
  return std::to_string(count);
}

/// The time and the number of wrong results of a loop of another library; "-" without it.
struct peer_figures {
  std::string time = "-";
  std::string wrong = "-";
};

#ifdef SAMEBITS_BENCH_SLEEF
peer_figures figures_of(samebits::bench::function_loop loop, const std::vector<float>& few,
                        const std::vector<float>& many, const std::vector<float>& exact) {
  if (loop == nullptr) return {};
  std::vector<float> y(many.size());
  char time[16];
  std::snprintf(time, sizeof time, "%.2f",
                time_of([&] { loop(few.data(), y.data(), few.size()); }));
  loop(many.data(), y.data(), many.size());
  return {time, differing(y, exact)};
}
#endif

void print(const row& r, const samebits::executor& where) {
  const std::vector<float> few = operands(2048, r.positive);
  std::vector<float> y(2048);
  std::vector<samebits::bf16> narrow(2048);
  const double wide_time = time_of([&] { evaluate(r.f, view_of(few), view_of(y), {}, where); });
  const double narrow_time =
      time_of([&] { evaluate(r.f, view_of(few), view_of(narrow), {}, where); });
  double library_time = 0;
  const std::vector<float> many = operands(1 << 20, r.positive);
  std::vector<float> exact(many.size()), other(many.size());
  std::vector<samebits::bf16> many_narrow(many.size()), results(many.size());
  samebits::convert(view_of(many), view_of(many_narrow), {}, where);
  const double long_time = time_of(
      [&] { evaluate(r.f, view_of(many_narrow), view_of(results), {}, where); }, many.size());
  evaluate(r.f, view_of(many), view_of(exact), {}, where);
  std::string library = "-";
  if (r.library != nullptr) {
    library_time = time_of([&] { std::transform(few.begin(), few.end(), y.begin(), r.library); });
    std::transform(many.begin(), many.end(), other.begin(), r.library);
    library = differing(other, exact);
  }
  std::string rounded = "-";
  if (r.binary64 != nullptr) {
    std::transform(many.begin(), many.end(), other.begin(),
                   [&](float x) { return static_cast<float>(r.binary64(double{x})); });
    rounded = differing(other, exact);
  }
  peer_figures sleef, mvec;
#ifdef SAMEBITS_BENCH_SLEEF
  sleef = figures_of(samebits::bench::sleef_loop(r.f), few, many, exact);
  mvec = figures_of(samebits::bench::libmvec_loop(r.f), few, many, exact);
#endif
  std::string of_rule[2] = {"-", "-"};
  constexpr function_rule rules[] = {function_rule::cuda_13_0, function_rule::torch_2_11};
  for (int i = 0; i < 2; ++i) {
    try {
      evaluate(r.f, view_of(many), view_of(other), {.rule = rules[i]}, where);
      of_rule[i] = differing(other, exact);
    } catch (const samebits::unsupported&) {  // the rule lacks the function
    }
  }
  std::printf("%-11s %8.2f %8.2f %8.2f %8.2f %8s %8s %10s %10s %10s %10s %10s %10s\n",
              std::string(name(r.f)).c_str(), wide_time, narrow_time, long_time, library_time,
              sleef.time.c_str(), mvec.time.c_str(), library.c_str(), rounded.c_str(),
              sleef.wrong.c_str(), mvec.wrong.c_str(), of_rule[0].c_str(), of_rule[1].c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const samebits::executor where{argc > 1 ? argv[1] : "", 1};
  std::printf("%-65s %s\n", "            nanoseconds an element", "not correctly rounded, of 2^20");
  std::printf("%-11s %8s %8s %8s %8s %8s %8s %10s %10s %10s %10s %10s %10s\n", "", "fp32",
              "to bf16", "bf16", "library", "SLEEF", "libmvec", "library", "binary64", "SLEEF",
              "libmvec", "cuda_13_0", "torch_2_11");
  for (const row& r : rows) print(r, where);
  return 0;
}
