// Texts of failures: fields and values of a case, its neighbours, explanation and repetition.
#include "report.hpp"

#include <cstdio>

#include "oracle/convert.hpp"
#include "support/conversion_case.hpp"
#include "support/grid_step.hpp"
#include "support/rules.hpp"

namespace samebits::testkit {
namespace {

std::string call_text(const trial& t) {
  return "a call of " + std::to_string(t.codes.size()) + " elements, in[0] and out[0] " +
         std::to_string(t.in_offset) + " and " + std::to_string(t.out_offset) +
         " elements behind a 256-byte border";
}

std::string heading(const conversion_under_test& c, const failing_trial& failed) {
  const std::size_t wrong = failed.errors.wrong_count;
  const std::string nan = c.nan == nan_result::any ? "any NaN" : std::string(name(c.rule.nan));
  return std::string(name(c.from)) + " to " + std::string(name(c.to)) + ", " +
         std::string(name(c.rule.rounding)) + " " + std::string(name(c.rule.overflow)) + ", " +
         nan + ", by the function under test: " + std::to_string(wrong) + " of " +
         std::to_string(failed.call.codes.size()) +
         (wrong == 1 ? " elements is" : " elements are") + " wrong (smallest case found)";
}

/// Returns the random bits of a stochastic case.
std::string random_text(const support::conversion_case& c) {
  if (c.rule.rounding != rounding::stochastic) return {};
  char value[16];
  std::snprintf(value, sizeof value, "0x%08X", static_cast<unsigned>(c.random.value));
  return std::string("\n  random bits R = ") + value + " of K = " + std::to_string(c.random.count) +
         " (seed " + std::to_string(c.origin->seed) + ", stream " +
         std::to_string(c.origin->stream) + ", index " + std::to_string(c.origin->index) + ")";
}

/// Returns where the input lies between two codes of the target; nothing if it is a code itself.
std::string neighbours_text(const support::conversion_case& c) {
  const oracle::exact_value x = oracle::decode(support::oracle_of(c.from), c.input);
  if (x.kind != oracle::value_kind::finite) return {};
  const support::grid_step step = support::locate(support::oracle_of(c.to), x);
  const std::uint64_t max = support::oracle_of(c.to).max_finite;
  if (step.lower == step.upper || step.upper > max) return {};
  const bool minus = x.negative && support::oracle_of(c.to).sign_bits == 1;
  const std::uint64_t sign =
      minus ? std::uint64_t{1} << (support::oracle_of(c.to).code_bits - 1) : 0;
  const std::string lower = short_code_text(c.to, step.lower == 0 ? 0 : step.lower | sign);
  const std::string between = lower + " and " + short_code_text(c.to, step.upper | sign);
  if (c.rule.rounding == rounding::stochastic) {
    return "\n  the input lies between " + between +
           ": v * 2^K = " + std::to_string(support::scaled_fraction(step, c.random.count)) +
           ", and v * 2^K + R >= 2^K rounds away from zero";
  }
  const bool tie = step.part * 2 == step.whole;
  return tie ? "\n  the input is a tie: halfway between " + between
             : "\n  the input lies between " + between;
}

std::string repeat_text(const support::conversion_case& c) {
  const std::string code = support::code_text(c.from, c.input);
  return "\n  repeat with: " + support::reproduction(c) +
         "\n  or in this check with .domain = {.codes = {" + code.substr(0, code.find(' ')) + "}}";
}

}  // namespace

std::string short_code_text(format_id format, std::uint64_t code) {
  const std::string text = support::code_text(format, code);
  return text.substr(0, text.find(' ')) + text.substr(text.rfind(" = "));
}

std::string failure_text(const trial_runner& runner, const failing_trial& failed,
                         const explanation& why, const std::string& how) {
  const verdict& v = failed.errors;
  if (!v.wrong) {
    return "the function under test " + (v.thrown.empty() ? v.trouble : v.thrown) + "\n  in " +
           call_text(failed.call) + ", " + how;
  }
  const auto position = static_cast<std::uint64_t>(v.wrong->position);
  const support::conversion_case c = runner.case_of(v.wrong->input, position);
  return heading(runner.conversion(), failed) + random_text(c) + "\n  input    " +
         support::code_text(c.from, c.input) + neighbours_text(c) + "\n  got      " +
         support::code_text(c.to, v.wrong->got) + "\n  expected " +
         support::code_text(c.to, v.wrong->expected) + "\n  " + why.text() + repeat_text(c) +
         "\n  element " + std::to_string(position) + " of " + call_text(failed.call) + ", " + how;
}

}  // namespace samebits::testkit
