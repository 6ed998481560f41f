// Judging, showing and drawing cases of arithmetic.
#include "support/arithmetic_case.hpp"

#include <cstdio>
#include <ostream>
#include <utility>

#include "oracle/convert.hpp"
#include "support/conversion_case.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

std::array<operand, 3> listed(const operands& x) { return {x.a, x.b, x.c}; }

std::size_t count_of(operation op) { return static_cast<std::size_t>(operand_count(op)); }

std::string hex_code(std::uint64_t code, format_id f) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%0*llX", spec_of(f).storage_bits / 4,
                static_cast<unsigned long long>(code));
  return text;
}

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
            hex_code(all[i].code, all[i].format) + "}";
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

oracle::operation oracle_of(operation op) {
  switch (op) {
    case operation::add: return oracle::operation::add;
    case operation::sub: return oracle::operation::sub;
    case operation::mul: return oracle::operation::mul;
    case operation::div: return oracle::operation::div;
    case operation::sqrt: return oracle::operation::sqrt;
    case operation::fma: return oracle::operation::fma;
    case operation::rem: return oracle::operation::rem;
    case operation::rint: return oracle::operation::rint;
    case operation::min: return oracle::operation::min;
    case operation::max: return oracle::operation::max;
    case operation::min_num: return oracle::operation::min_num;
    case operation::max_num: return oracle::operation::max_num;
  }
  throw std::invalid_argument("oracle_of: op is not an operation");
}

oracle::exact_outcome exact_result_of(const arithmetic_case& c) {
  const auto all = listed(c.x);
  const std::array<oracle::operand, 3> exact_operands{
      oracle::operand{&oracle_of(all[0].format), all[0].code},
      {&oracle_of(all[1].format), all[1].code},
      {&oracle_of(all[2].format), all[2].code}};
  return oracle::exact_result(oracle_of(c.op), {exact_operands.data(), count_of(c.op)},
                              c.rule.rounding, c.random);
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

namespace {

/// The code of `f` nearest to a value.
std::uint64_t nearest_code(format_id f, const oracle::exact_value& x) {
  return oracle::round_exact(oracle_of(f), x, {rounding::nearest_even, overflow::saturate});
}

std::uint64_t any_code(format_id f, format_id to, const word_source& next) {
  return draw_code(static_cast<code_family>(next() % code_family_count), f, to, next);
}

/// A finite value of a grid half as wide as the destination's: on it, on a tie, or beside one.
oracle::exact_value wanted_result(format_id to, const word_source& next) {
  const std::uint64_t unit = next() % 4;
  const auto family = unit == 0   ? code_family::edge
                      : unit == 1 ? code_family::tie
                      : unit == 2 ? code_family::near_tie
                                  : code_family::on_grid;
  const std::uint64_t code = draw_code(family, format_id::fp64, to, next);
  return oracle::decode(oracle_of(format_id::fp64), code);
}

/// The operand that takes the others to a wanted result, as near as its format allows.
std::uint64_t solved(oracle::operation op, format_id wanted_format, const oracle::operand& wanted,
                     const oracle::operand& other) {
  const std::array<oracle::operand, 2> pair{wanted, other};
  return oracle::arithmetic(op, pair, oracle_of(wanted_format),
                            {rounding::nearest_even, overflow::saturate})
      .code;
}

std::uint64_t beside(format_id f, std::uint64_t code, const word_source& next) {
  const auto ulps = static_cast<std::int64_t>(next() % 5) - 2;
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - spec_of(f).storage_bits);
  return (code + static_cast<std::uint64_t>(ulps)) & mask;
}

}  // namespace

operands draw_operands(operation op, const operand_formats& from, format_id to,
                       const word_source& next) {
  std::array<std::uint64_t, 3> code{any_code(from[0], to, next), any_code(from[1], to, next),
                                    any_code(from[2], to, next)};
  const oracle::operand a{&oracle_of(from[0]), code[0]};
  const oracle::operand b{&oracle_of(from[1]), code[1]};
  const std::uint64_t kind = next() % 4;
  if (kind == 0) {  // a near-copy in value, of either sign
    code[1] = beside(from[1], nearest_code(from[1], oracle::decode(*a.from, a.code)), next);
    if (next() % 2 == 0) code[1] ^= std::uint64_t{1} << (spec_of(from[1]).storage_bits - 1);
  } else if (kind == 1) {  // a wanted result; the nearest binary64 of it is near enough to aim at
    const oracle::exact_value target = wanted_result(to, next);
    const oracle::format& fp64 = oracle_of(format_id::fp64);
    const oracle::operand wanted{&fp64, oracle::round_exact(fp64, target, {})};
    switch (op) {
      case operation::add:
      case operation::sub:
        code[1] = solved(oracle::operation::sub, from[1], wanted, a);
        if (op == operation::sub) {
          code[1] ^= std::uint64_t{1} << (spec_of(from[1]).storage_bits - 1);
        }
        break;
      case operation::mul: code[1] = solved(oracle::operation::div, from[1], wanted, a); break;
      case operation::div: code[0] = solved(oracle::operation::mul, from[0], wanted, b); break;
      case operation::sqrt:
        code[0] = solved(oracle::operation::mul, from[0], wanted, wanted);
        break;
      case operation::fma: {
        const std::array<oracle::operand, 2> factors{a, b};
        const std::uint64_t product =
            oracle::arithmetic(oracle::operation::mul, factors, fp64, {}).code;
        code[2] = solved(oracle::operation::sub, from[2], wanted, {&fp64, product});
        break;
      }
      default: code[0] = nearest_code(from[0], target); break;
    }
    if (next() % 4 == 0) code[op == operation::fma ? 2 : 0] ^= 1;
  }
  return {{from[0], code[0]}, {from[1], code[1]}, {from[2], code[2]}};
}

random_bits draw_random(const word_source& next) {
  const int k = 1 + static_cast<int>(next() % (next() % 2 == 0 ? 32 : 4));
  const std::uint64_t limit = std::uint64_t{1} << k;
  const std::uint64_t r = next() % 8 == 0 ? (next() % 2 == 0 ? 0 : limit - 1) : next() % limit;
  return {static_cast<std::uint32_t>(r), k};
}

random_bits draw_random_at(const oracle::placed_outcome& placed, const word_source& next) {
  random_bits random = draw_random(next);
  if (next() % 2 == 0) return random;
  const std::uint64_t limit = std::uint64_t{1} << random.count;
  random.value =
      static_cast<std::uint32_t>((placed.smallest_away(random.count) - next() % 2) % limit);
  return random;
}

}  // namespace samebits::support
