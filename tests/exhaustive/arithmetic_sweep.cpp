// Random operands of one operation, or of all, compared in every rounding mode with the exact
// oracle:
//
//   arithmetic_sweep OP|all FORMAT|mixed|all CASES [SEED [THREADS]]
//
// CASES sets of operands for each operation and format, each through all six deterministic modes
// and stochastic rounding, with an overflow and NaN policy chosen anew; "mixed" draws the formats
// of operands and destination too. Prints one line per operation and format; the exit status is 1
// if any result differs and 2 for a bad command line.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "samebits/arithmetic.hpp"
#include "support/arithmetic_case.hpp"
#include "support/effort.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;

struct sweep_settings {
  std::vector<operation> operations;
  std::vector<std::optional<format_id>> formats;  ///< nothing: mixed
  std::uint64_t cases = 0;
  std::uint64_t seed = 1;
  unsigned threads = 1;
};

struct comparison_counts {
  std::uint64_t compared = 0;
  std::uint64_t differing = 0;
  std::uint64_t raised[5] = {};  ///< how often each flag was expected: none may stay 0
};

std::mutex printing;

void compare(const arithmetic_case& c, const oracle::rounded_result& expected,
             comparison_counts& t) {
  const arithmetic_result got = compute(c.op, c.x, c.to, c.rule, c.random);
  ++t.compared;
  for (int bit = 0; bit < 5; ++bit) t.raised[bit] += (expected.flags >> bit) & 1;
  if (got.code == expected.code && static_cast<unsigned>(got.raised) == expected.flags) return;
  if (t.differing++ < 3) {
    const std::lock_guard lock(printing);
    std::printf("%s\n", same_result(c, got, expected).message());
  }
}

/// One set of operands through every mode.
void check(arithmetic_case& c, const word_source& next, comparison_counts& t) {
  c.random = draw_random(next);
  c.rule.overflow = overflow_policies[next() % overflow_policies.size()];
  c.rule.nan = nan_policies[next() % nan_policies.size()];
  std::optional<oracle::placed_outcome> placed;
  for (int m = 0; m < enum_count<rounding>; ++m) {
    const auto mode = static_cast<rounding>(m);
    const bool own_result = c.op == operation::rint || mode == rounding::downward ||
                            c.rule.rounding == rounding::downward;
    c.rule.rounding = mode;
    if (!placed || own_result) placed.emplace(oracle_of(c.to), exact_result_of(c));
    // rint draws at random: its exact result depends on the bits.
    if (mode == rounding::stochastic && c.op != operation::rint) {
      c.random = draw_random_at(*placed, next);
    }
    compare(c, placed->by(c.rule, c.random), t);
  }
}

comparison_counts run(operation op, const std::optional<format_id>& format, std::uint64_t cases,
                      std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  const word_source next = [&] { return engine(); };
  const auto any = [&] { return arithmetic_formats[next() % arithmetic_formats.size()]; };
  comparison_counts t;
  arithmetic_case c;
  c.op = op;
  for (std::uint64_t i = 0; i < cases; ++i) {
    const operand_formats from{format ? *format : any(), format ? *format : any(),
                               format ? *format : any()};
    c.to = format ? *format : any();
    c.x = draw_operands(op, from, c.to, next);
    check(c, next, t);
  }
  return t;
}

comparison_counts run_threads(operation op, const std::optional<format_id>& format,
                              const sweep_settings& p) {
  std::vector<comparison_counts> parts(p.threads);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < p.threads; ++i) {
    threads.emplace_back([&, i] {
      const std::uint64_t seed = ((p.seed * 1000 + static_cast<std::uint64_t>(op)) * 16 +
                                  (format ? static_cast<std::uint64_t>(*format) : 15)) *
                                     1024 +
                                 i;
      parts[i] = run(op, format, p.cases / p.threads + (i < p.cases % p.threads ? 1 : 0), seed);
    });
  }
  comparison_counts sum;
  for (unsigned i = 0; i < p.threads; ++i) {
    threads[i].join();
    sum.compared += parts[i].compared;
    sum.differing += parts[i].differing;
    for (int bit = 0; bit < 5; ++bit) sum.raised[bit] += parts[i].raised[bit];
  }
  return sum;
}

std::optional<sweep_settings> settings_of(int argc, char** argv) {
  if (argc < 4 || argc > 6) return std::nullopt;
  sweep_settings p;
  const std::string op = argv[1];
  const std::string format = argv[2];
  if (op == "all") {
    p.operations = all_operations();
  } else if (const auto found = find_enumerator<operation>(op)) {
    p.operations = {*found};
  } else {
    return std::nullopt;
  }
  if (format == "all") p.formats.assign(arithmetic_formats.begin(), arithmetic_formats.end());
  if (format == "all" || format == "mixed") {
    p.formats.emplace_back(std::nullopt);
  } else if (const auto found = find_format(format); found && has_arithmetic(*found)) {
    p.formats.emplace_back(*found);
  } else {
    return std::nullopt;
  }
  p.cases = std::strtoull(argv[3], nullptr, 10);
  if (argc > 4) p.seed = std::strtoull(argv[4], nullptr, 10);
  if (argc > 5) p.threads = static_cast<unsigned>(std::strtoul(argv[5], nullptr, 10));
  if (p.cases == 0 || p.threads == 0) return std::nullopt;
  p.cases = (p.cases + effort_divisor - 1) / effort_divisor;
  return p;
}

int main_of(const sweep_settings& p) {
  comparison_counts sum;
  for (const operation op : p.operations) {
    for (const auto& format : p.formats) {
      const comparison_counts t = run_threads(op, format, p);
      std::printf(
          "%-7s %-5s %llu results, %llu differ; flags %llu %llu %llu %llu %llu\n",
          std::string(name(op)).c_str(), format ? std::string(name(*format)).c_str() : "mixed",
          static_cast<unsigned long long>(t.compared), static_cast<unsigned long long>(t.differing),
          static_cast<unsigned long long>(t.raised[0]),
          static_cast<unsigned long long>(t.raised[1]),
          static_cast<unsigned long long>(t.raised[2]),
          static_cast<unsigned long long>(t.raised[3]),
          static_cast<unsigned long long>(t.raised[4]));
      sum.compared += t.compared;
      sum.differing += t.differing;
    }
  }
  std::printf("%llu results, %llu differ\n", static_cast<unsigned long long>(sum.compared),
              static_cast<unsigned long long>(sum.differing));
  return sum.differing == 0 ? 0 : 1;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  const auto p = samebits::settings_of(argc, argv);
  if (!p) {
    std::fprintf(stderr,
                 "usage: arithmetic_sweep OP|all FORMAT|mixed|all CASES [SEED [THREADS]]\n");
    return 2;
  }
  return samebits::main_of(*p);
}
