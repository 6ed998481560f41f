// Commands and calls that repeat a conversion.
#include "engine/core/conversion_case.hpp"

#include <cstdio>
#include <ostream>

#include "engine/core/text.hpp"
#include "samebits/scalar.hpp"

namespace samebits::support {
namespace {

std::string format_double(const char* pattern, double x) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, x);
  return text;
}

/// fpinspect's spelling of a value.
std::string value_argument(const conversion_case& c) {
  const std::string sign = is_negative(c.from, c.input) ? "-" : "";
  switch (classify(c.from, c.input)) {
    case number_class::nan: return sign + "nan";
    case number_class::infinite: return sign + "inf";
    default: return format_double("%a", decode_double(c.from, c.input));
  }
}

/// Whether the code is the one a value stands for: no payload, no ignored bits.
bool value_says_all(const conversion_case& c) {
  constexpr cast_rule keep{rounding::nearest_even, overflow::ieee, nan_policy::preserve_sign};
  return convert_code(c.from, c.from, c.input, keep).code == c.input;
}

std::string rule_options(const cast_rule& rule) {
  return "--rounding " + std::string(name(rule.rounding)) + " --overflow " +
         std::string(name(rule.overflow)) + " --nan " + std::string(name(rule.nan));
}

std::string convert_command(const conversion_case& c) {
  const int bytes = spec_of(c.from).storage_bits / 8;
  const std::string codes = "'<u" + std::to_string(bytes) + "'";
  const bool wide = c.from == format_id::fp64;  // has no code dtype, but a .npy holds doubles
  std::string text = "python3 -c \"import numpy as n; n.save('case.npy', n.array([" +
                     hex(c.input, spec_of(c.from).storage_bits) + "], " + codes + ")" +
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
                     hex(c.input, spec_of(c.from).storage_bits) +
                     ", {rounding::" + std::string(name(c.rule.rounding)) +
                     ", overflow::" + std::string(name(c.rule.overflow)) +
                     ", nan_policy::" + std::string(name(c.rule.nan)) + "}";
  if (c.rule.rounding == rounding::stochastic) {
    text += ", {" + hex(c.random.value, 32) + ", " + std::to_string(c.random.count) + "}";
  }
  return text + ")";
}

}  // namespace

std::string reproduction(const conversion_case& c) {
  if (c.rule.rounding == rounding::stochastic) {
    return c.origin && c.to != format_id::fp64 ? convert_command(c) : call_text(c);
  }
  if (!value_says_all(c) && c.to != format_id::fp64) return convert_command(c);
  return "fpinspect cast --to " + std::string(name(c.to)) + " " + rule_options(c.rule) + " -- " +
         value_argument(c);
}

std::ostream& operator<<(std::ostream& out, const conversion_case& c) {
  return out << call_text(c);
}

}  // namespace samebits::support
