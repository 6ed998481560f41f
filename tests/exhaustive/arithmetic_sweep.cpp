// Random operands of one operation, or of all, compared in every rounding mode with the exact
// oracle:
//
//   arithmetic_sweep OP|all FORMAT|mixed|all CASES [SEED [THREADS]]
//
// CASES sets of operands for each operation and format, each through all six deterministic modes
// and stochastic rounding, with an overflow and NaN policy chosen anew; "mixed" draws the formats
// of operands and destination too. Prints one line per operation and format; the exit status is 1
// if any result differs and 2 for a bad command line.
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "exhaustive/sweep_program.hpp"
#include "samebits/arithmetic.hpp"
#include "support/arithmetic_case.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;

std::mutex printing;

void compare(const arithmetic_case& c, const oracle::rounded_result& expected,
             comparison_counts& t) {
  const arithmetic_result got = compute(c.op, c.x, c.to, c.rule, c.random);
  ++t.compared;
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

std::uint64_t seed_of(std::uint64_t seed, operation op, const std::optional<format_id>& format,
                      std::uint64_t thread) {
  const std::uint64_t number = format ? static_cast<std::uint64_t>(*format) : 15;
  return ((seed * 1000 + static_cast<std::uint64_t>(op)) * 16 + number) * 1024 + thread;
}

std::optional<bool> agrees(const command_line& words) {
  if (words.size() < 3 || words.size() > 5) return std::nullopt;
  const std::uint64_t cases = (words.number(2) + effort_divisor - 1) / effort_divisor;
  const std::uint64_t seed = words.number(3, 1), threads = words.number(4, 1);
  if (cases == 0 || threads == 0) return std::nullopt;
  comparison_counts sum;
  for (const operation op : all_operations()) {
    if (words[0] != "all" && words[0] != name(op)) continue;
    for (std::size_t i = 0; i <= arithmetic_formats.size(); ++i) {
      std::optional<format_id> format;  // nothing: mixed
      if (i < arithmetic_formats.size()) format = arithmetic_formats[i];
      const std::string text(format ? name(*format) : "mixed");
      if (words[1] != "all" && words[1] != text) continue;
      const comparison_counts t = sum_on_threads(threads, [&](std::uint64_t thread) {
        return run(op, format, cases / threads + (thread < cases % threads ? 1 : 0),
                   seed_of(seed, op, format, thread));
      });
      all_agree(std::string(name(op)) + ' ' + text, t);
      sum += t;
    }
  }
  if (sum.compared == 0) return std::nullopt;
  return all_agree("all", sum);
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  return samebits::support::run_program(
      argc, argv, "arithmetic_sweep OP|all FORMAT|mixed|all CASES [SEED [THREADS]]",
      samebits::agrees);
}
