// Judging, showing and drawing cases of arithmetic.
#include "support/arithmetic_case.hpp"

#include <ostream>
#include <utility>

#include "oracle/convert.hpp"
#include "support/conversion_case.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

std::array<operand, 3> listed(const operands& x) { return {x.a, x.b, x.c}; }

std::size_t count_of(operation op) { return static_cast<std::size_t>(operand_count(op)); }

std::string flag_names(unsigned flags) {
  std::string text;
  for (const auto& [bit, flag] : {std::pair{oracle::flag_invalid, "invalid"},
                                  {oracle::flag_divide_by_zero, "divide_by_zero"},
                                  {oracle::flag_overflow, "overflow"},
                                  {oracle::flag_underflow, "underflow"},
                                  {oracle::flag_inexact, "inexact"}}) {
    if ((flags & bit) != 0) text += (text.empty() ? "" : "+") + std::string(flag);
  }
  return text.empty() ? "no flags" : text;
}

std::string call_text(const arithmetic_case& c) {
  std::string text = "compute(operation::" + std::string(name(c.op)) + ", {";
  const auto all = listed(c.x);
  for (std::size_t i = 0; i < count_of(c.op); ++i) {
    text += (i == 0 ? "{format_id::" : ", {format_id::") + std::string(name(all[i].format)) + ", " +
            hex(all[i].code, spec_of(all[i].format).storage_bits) + "}";
  }
  text += "}, format_id::" + std::string(name(c.to)) +
          ", {rounding::" + std::string(name(c.rule.rounding)) +
          ", overflow::" + std::string(name(c.rule.overflow)) +
          ", nan_policy::" + std::string(name(c.rule.nan)) + "}";
  if (c.rule.rounding == rounding::stochastic) {
    text += ", {" + std::to_string(c.random.value) + "u, " + std::to_string(c.random.count) + "}";
  }
  return text + ")";
}

}  // namespace

oracle::exact_outcome exact_result_of(const arithmetic_case& c) {
  const auto all = listed(c.x);
  const std::array<oracle::operand, 3> exact_operands{
      oracle::operand{&oracle_of(all[0].format), all[0].code},
      {&oracle_of(all[1].format), all[1].code},
      {&oracle_of(all[2].format), all[2].code}};
  return oracle::exact_result(c.op, {exact_operands.data(), count_of(c.op)}, c.rule.rounding,
                              c.random);
}

oracle::rounded_result expected_result(const arithmetic_case& c) {
  return oracle::round_outcome(oracle_of(c.to), exact_result_of(c), c.rule, c.random);
}

::testing::AssertionResult same_result(const arithmetic_case& c, const arithmetic_result& got,
                                       const oracle::rounded_result& expected) {
  const auto raised = static_cast<unsigned>(got.raised);
  if (got.code == expected.code && raised == expected.flags) {
    return ::testing::AssertionSuccess();
  }
  ::testing::AssertionResult failure = ::testing::AssertionFailure();
  failure << name(c.op) << " into " << name(c.to) << ", " << text_of(c.rule) << ", by " << c.where;
  const auto all = listed(c.x);
  for (std::size_t i = 0; i < count_of(c.op); ++i) {
    failure << "\n  operand  " << name(all[i].format) << " "
            << code_text(all[i].format, all[i].code);
  }
  if (c.rule.rounding == rounding::stochastic) {
    failure << "\n  random bits " << c.random.value << " of K = " << c.random.count;
  }
  return failure << "\n  got      " << code_text(c.to, got.code) << ", " << flag_names(raised)
                 << "\n  expected " << code_text(c.to, expected.code) << ", "
                 << flag_names(expected.flags) << "\n  repeat with: " << call_text(c);
}

std::ostream& operator<<(std::ostream& out, const arithmetic_case& c) {
  return out << call_text(c);
}

outcome_memo::outcome_memo(format_id to, std::vector<cast_rule> rules)
    : to_(&oracle_of(to)), rules_(std::move(rules)) {}

const std::vector<oracle::rounded_result>& outcome_memo::at(const oracle::exact_outcome& x) {
  oracle::exact_value v = x.value;
  if (v.numerator != 0) {  // equal numbers, equal keys
    const auto up = static_cast<int>(lsb(v.numerator));
    const auto down = static_cast<int>(lsb(v.denominator));
    v.numerator >>= up;
    v.denominator >>= down;
    v.exponent += up - down;
  } else {
    v.exponent = 0;
    v.denominator = 1;
  }
  const key k{v.kind, v.negative, x.flags, v.exponent, v.numerator, v.denominator};
  const auto [entry, fresh] = results_.try_emplace(k);
  if (fresh) {
    const oracle::placed_outcome placed(*to_, x);
    for (const cast_rule& rule : rules_) entry->second.push_back(placed.by(rule));
  }
  return entry->second;
}

}  // namespace samebits::support
