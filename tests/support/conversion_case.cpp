// Texts of conversion cases. Values in commands are the oracle's.
#include "support/conversion_case.hpp"

#include <bit>
#include <cstdio>
#include <ostream>

#include "oracle/convert.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

std::string format_double(const char* pattern, double x) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, x);
  return text;
}

double value_of(format_id format, std::uint64_t code) {
  constexpr cast_rule keep{rounding::nearest_even, overflow::ieee, nan_policy::preserve_sign};
  return std::bit_cast<double>(
      oracle::convert(oracle_of(format), oracle_of(format_id::fp64), code, keep));
}

/// fpinspect's spelling of a value.
std::string value_argument(const conversion_case& c) {
  const oracle::exact_value x = oracle::decode(oracle_of(c.from), c.input);
  const std::string sign = x.negative ? "-" : "";
  if (x.kind == oracle::value_kind::nan) return sign + "nan";
  if (x.kind == oracle::value_kind::infinite) return sign + "inf";
  return format_double("%a", value_of(c.from, c.input));
}

/// Whether the code is the one a value stands for: no payload, no ignored bits.
bool value_says_all(const conversion_case& c) {
  const oracle::format& from = oracle_of(c.from);
  if (oracle::meaningful_bits(from, c.input) != c.input) return false;
  const oracle::exact_value x = oracle::decode(from, c.input);
  if (x.kind != oracle::value_kind::nan) return true;
  constexpr cast_rule keep{rounding::nearest_even, overflow::ieee, nan_policy::preserve_sign};
  return oracle::convert(from, from, c.input, keep) == c.input;
}

std::string rule_options(const cast_rule& rule) {
  return "--rounding " + std::string(name(rule.rounding)) + " --overflow " +
         std::string(name(rule.overflow)) + " --nan " + std::string(name(rule.nan));
}

std::string convert_command(const conversion_case& c) {
  const int bytes = oracle_of(c.from).storage_bits / 8;
  const std::string codes = "'<u" + std::to_string(bytes) + "'";
  const bool wide = c.from == format_id::fp64;  // has no code dtype, but a .npy holds doubles
  std::string text = "python3 -c \"import numpy as n; n.save('case.npy', n.array([" +
                     hex(c.input, oracle_of(c.from).storage_bits) + "], " + codes + ")" +
                     (wide ? ".view('<f8')" : "") + ")\" && fpinspect convert case.npy out.npy" +
                     (wide ? "" : " --from " + std::string(name(c.from))) + " --to " +
                     std::string(name(c.to)) + " " + rule_options(c.rule);
  if (c.rule.rounding == rounding::stochastic) {
    text += " --seed " + std::to_string(c.origin->seed) + " --stream " +
            std::to_string(c.origin->stream) + " --offset " + std::to_string(c.origin->index) +
            " --random-bits " + std::to_string(c.random.count);
  }
  return text;
}

std::string call_text(const conversion_case& c) {
  std::string text = "convert_code(format_id::" + std::string(name(c.from)) +
                     ", format_id::" + std::string(name(c.to)) + ", " +
                     hex(c.input, oracle_of(c.from).storage_bits) +
                     ", {rounding::" + std::string(name(c.rule.rounding)) +
                     ", overflow::" + std::string(name(c.rule.overflow)) +
                     ", nan_policy::" + std::string(name(c.rule.nan)) + "}";
  if (c.rule.rounding == rounding::stochastic) {
    text += ", {" + hex(c.random.value, 32) + ", " + std::to_string(c.random.count) + "}";
  }
  return text + ")";
}

}  // namespace

std::uint64_t expected_code(const conversion_case& c) {
  return oracle::convert(oracle_of(c.from), oracle_of(c.to), c.input, c.rule, c.random);
}

std::string reproduction(const conversion_case& c) {
  if (c.rule.rounding == rounding::stochastic) {
    return c.origin && c.to != format_id::fp64 ? convert_command(c) : call_text(c);
  }
  if (!value_says_all(c) && c.to != format_id::fp64) return convert_command(c);
  return "fpinspect cast --to " + std::string(name(c.to)) + " " + rule_options(c.rule) + " -- " +
         value_argument(c);
}

::testing::AssertionResult same_code(const conversion_case& c, std::uint64_t got,
                                     std::uint64_t expected) {
  if (got == expected) return ::testing::AssertionSuccess();
  ::testing::AssertionResult failure = ::testing::AssertionFailure();
  failure << name(c.from) << " to " << name(c.to) << ", " << text_of(c.rule) << ", by " << c.where;
  if (c.rule.rounding == rounding::stochastic) {
    failure << "\n  random bits " << hex(c.random.value, 32) << " of K = " << c.random.count;
    if (c.origin) {
      failure << " (seed " << c.origin->seed << ", stream " << c.origin->stream << ", index "
              << c.origin->index << ")";
    }
  }
  return failure << "\n  input    " << code_text(c.from, c.input) << "\n  got      "
                 << code_text(c.to, got) << "\n  expected " << code_text(c.to, expected)
                 << "\n  repeat with: " << reproduction(c);
}

std::ostream& operator<<(std::ostream& out, const conversion_case& c) {
  return out << call_text(c);
}

}  // namespace samebits::support
