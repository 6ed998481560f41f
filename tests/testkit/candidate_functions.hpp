// Pure functions of codes, of which the rows of the table of usual errors are made.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "explain.hpp"
#include "samebits/scalar.hpp"

namespace samebits::testkit {

using code = std::uint64_t;

inline code input_of(const seen_element& e) { return e.call.in[e.i]; }
inline std::uint64_t position_of(const seen_element& e) { return e.call.first + e.i; }

/// Returns the K random bits of the element at `position` of the call.
inline random_bits random_at(const conversion_under_test& c, std::uint64_t position, int bits) {
  return {random_word(c.random.seed, c.random.stream, c.random.offset + position, bits), bits};
}

/// Returns the code of an input by another rule, with the element's own random bits.
inline code by_rule(const seen_element& e, code input, const cast_rule& rule) {
  const conversion_under_test& c = e.conversion;
  const bool random = rule.rounding == rounding::stochastic;
  return convert_code(c.from, c.to, input, rule,
                      random ? random_at(c, position_of(e), c.random.bits) : random_bits{})
      .code;
}
inline code by_rule(const seen_element& e, code input) {
  return by_rule(e, input, e.conversion.rule);
}

/// Returns the code of the element by the conversion's rule with other random bits.
inline code with_random(const seen_element& e, const random_bits& random) {
  const conversion_under_test& c = e.conversion;
  return convert_code(c.from, c.to, input_of(e), c.rule, random).code;
}

inline double value(const seen_element& e) { return decode_double(e.conversion.from, input_of(e)); }

/// Returns a zero of the target with the input's sign.
inline code signed_zero(const seen_element& e) {
  const double zero = std::copysign(0.0, value(e));
  return convert_code(format_id::fp64, e.conversion.to, std::bit_cast<code>(zero)).code;
}

/// Returns the largest finite number of the target, with a sign.
inline code largest(const seen_element& e, bool negative) {
  const double max = decode_double(e.conversion.to, max_finite(e.conversion.to));
  return convert_code(format_id::fp64, e.conversion.to, std::bit_cast<code>(negative ? -max : max),
                      {}, {})
      .code;
}

inline bool is_subnormal(format_id f, code c) { return classify(f, c) == number_class::subnormal; }

/// Returns whether the input is finite, not 0 and below the target's normal numbers.
inline bool below_normal(const seen_element& e) {
  const double x = std::abs(value(e));
  return x > 0 && x < decode_double(e.conversion.to, min_normal(e.conversion.to));
}

inline bool is_nan_input(const seen_element& e) { return is_nan(e.conversion.from, input_of(e)); }

/// Returns whether the right result is beyond the largest finite number before the overflow policy.
inline bool overflows(const seen_element& e) {
  const conversion_under_test& c = e.conversion;
  const converted r =
      convert_code(c.from, c.to, input_of(e), c.rule, random_at(c, position_of(e), c.random.bits));
  return r.overflow || classify(c.from, input_of(e)) == number_class::infinite;
}

/// Adds the errors of stochastic rounding: another index, other random bits.
void add_random_candidates(std::vector<candidate>& rows, const conversion_under_test& conversion);

}  // namespace samebits::testkit
