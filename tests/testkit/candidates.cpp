// The table of usual errors of conversions. A row is a sentence and a pure function of codes.
#include <initializer_list>

#include "candidate_functions.hpp"
#include "explain.hpp"
#include "guarded_array.hpp"

namespace samebits::testkit {
namespace {

using table = std::vector<candidate>;

// ---- Roundings ----

std::string text_of(rounding r) {
  switch (r) {
    case rounding::nearest_even: return "to nearest even";
    case rounding::nearest_away: return "to nearest with ties away from zero";
    case rounding::toward_zero: return "toward zero (truncated)";
    case rounding::upward: return "up (toward +Inf)";
    case rounding::downward: return "down (toward -Inf)";
    case rounding::to_odd: return "to odd";
    case rounding::stochastic: return "stochastically";
    default: return std::string(name(r));
  }
}

std::string instead(rounding got, rounding asked) {
  if (got == rounding::nearest_away && asked == rounding::nearest_even) {
    return "ties away from zero instead of to even";
  }
  if (got == rounding::nearest_even && asked == rounding::nearest_away) {
    return "ties to even instead of away from zero";
  }
  return "rounded " + text_of(got) + " instead of " + text_of(asked);
}

/// Adds a rounding twice: with its own results at overflow, and with those of the tested rule.
void add_rounding(table& rows, const std::string& sentence, const decltype(candidate::code)& rule) {
  rows.push_back({sentence, rule});
  rows.push_back({sentence, [rule](const seen_element& e) {
                    return overflows(e) ? by_rule(e, input_of(e)) : rule(e);
                  }});
}

void add_roundings(table& rows, const conversion_under_test& conversion) {
  const rounding asked = conversion.rule.rounding;
  for (int i = 0; i < enum_count<rounding>; ++i) {
    const rounding other = static_cast<rounding>(i);
    if (other == asked || other == rounding::stochastic) continue;
    add_rounding(rows, instead(other, asked), [other](const seen_element& e) {
      cast_rule rule = e.conversion.rule;
      rule.rounding = other;
      return by_rule(e, input_of(e), rule);
    });
  }
  add_rounding(rows, "rounded away from zero instead of " + text_of(asked),
               [](const seen_element& e) {
                 cast_rule rule = e.conversion.rule;
                 rule.rounding = value(e) < 0 ? rounding::downward : rounding::upward;
                 return by_rule(e, input_of(e), rule);
               });
  // Stochastic rounding goes away from zero iff floor(v * 2^32) + R >= 2^32. With R = 2^31 - 1
  // this means v > 1/2 for sources of at most 32 bits.
  if (spec_of(conversion.from).storage_bits > 32) return;
  const std::string to_zero =
      asked == rounding::nearest_even
          ? "ties toward zero instead of to even"
          : "rounded to nearest with ties toward zero instead of " + text_of(asked);
  add_rounding(rows, to_zero, [](const seen_element& e) {
    const conversion_under_test& c = e.conversion;
    cast_rule rule = c.rule;
    rule.rounding = rounding::stochastic;
    return convert_code(c.from, c.to, input_of(e), rule, {0x7FFFFFFF, 32}).code;
  });
}

// ---- Overflow ----

std::string text_of(overflow policy, const std::string& beyond) {
  switch (policy) {
    case overflow::ieee: return beyond + " on overflow";
    case overflow::saturate: return "saturated to the largest finite number on overflow";
    case overflow::saturate_finite: return "finite numbers saturated and Inf kept on overflow";
  }
  return "?";
}

void add_overflows(table& rows, const conversion_under_test& conversion) {
  const overflow asked = conversion.rule.overflow;
  const bool has_inf = spec_of(conversion.to).special == specials::ieee;
  const std::string beyond = has_inf ? "Inf" : "NaN";
  for (int i = 0; i < enum_count<overflow>; ++i) {
    const auto other = static_cast<overflow>(i);
    if (other == asked) continue;
    rows.push_back({text_of(other, beyond) + " instead of: " + text_of(asked, beyond),
                    [other](const seen_element& e) {
                      cast_rule rule = e.conversion.rule;
                      rule.overflow = other;
                      return by_rule(e, input_of(e), rule);
                    }});
  }
  rows.push_back(
      {"overflow decided before rounding: everything above the largest finite number",
       [](const seen_element& e) {
         const conversion_under_test& c = e.conversion;
         const double x = value(e);
         const double max = decode_double(c.to, max_finite(c.to));
         const bool beyond_max = std::isfinite(x) && std::abs(x) > max;
         if (!beyond_max) return by_rule(e, input_of(e));
         const double huge = std::copysign(0x1p1000, x);
         return convert_code(format_id::fp64, c.to, std::bit_cast<code>(huge), c.rule).code;
       }});
}

// ---- Subnormal numbers ----

/// Returns whether an error replaces the element by zero.
using flush = bool (*)(const seen_element&);

void add_flushes(table& rows) {
  struct row {
    const char* sentence;
    flush replaces;
  };
  static constexpr row flushes[] = {
      {"subnormal inputs flushed to zero",
       [](const seen_element& e) { return is_subnormal(e.conversion.from, input_of(e)); }},
      {"subnormal results flushed to zero",
       [](const seen_element& e) {
         return is_subnormal(e.conversion.to, by_rule(e, input_of(e)));
       }},
      {"results below the smallest normal number flushed to zero before rounding", below_normal},
      {"subnormal inputs and subnormal results flushed to zero",
       [](const seen_element& e) {
         return is_subnormal(e.conversion.from, input_of(e)) ||
                is_subnormal(e.conversion.to, by_rule(e, input_of(e)));
       }},
  };
  for (const row& r : flushes) {
    const flush replaces = r.replaces;
    rows.push_back({r.sentence, [replaces](const seen_element& e) {
                      return replaces(e) ? signed_zero(e) : by_rule(e, input_of(e));
                    }});
    rows.push_back(
        {std::string(r.sentence) + " without their sign", [replaces](const seen_element& e) {
           return replaces(e) ? code{0} : by_rule(e, input_of(e));
         }});
  }
}

// ---- Two roundings, and other formats ----

void add_double_roundings(table& rows, const conversion_under_test& conversion) {
  for (const rounding first : {rounding::nearest_even, rounding::toward_zero}) {
    for (const format_id between :
         {format_id::fp16, format_id::bf16, format_id::tf32, format_id::fp32}) {
      if (between == conversion.from || between == conversion.to) continue;
      const std::string how = first == rounding::toward_zero ? " (truncated)" : "";
      rows.push_back({"rounded twice: to " + std::string(name(between)) + how + ", then to " +
                          std::string(name(conversion.to)),
                      [first, between](const seen_element& e) {
                        const conversion_under_test& c = e.conversion;
                        const cast_rule rule{first, overflow::ieee, nan_policy::preserve_sign};
                        const code middle = convert_code(c.from, between, input_of(e), rule).code;
                        return convert_code(between, c.to, middle, c.rule,
                                            random_at(c, position_of(e), c.random.bits))
                            .code;
                      }});
    }
  }
}

void add_other_formats(table& rows, const conversion_under_test& conversion) {
  for (int i = 0; i < format_count; ++i) {
    const format_id other = format_at(i);
    if (other == conversion.to || storage_bytes(other) != storage_bytes(conversion.to)) continue;
    rows.push_back(
        {"codes of " + std::string(name(other)) + " instead of " + std::string(name(conversion.to)),
         [other](const seen_element& e) {
           const conversion_under_test& c = e.conversion;
           return convert_code(c.from, other, input_of(e), c.rule,
                               random_at(c, position_of(e), c.random.bits))
               .code;
         }});
  }
}

// ---- NaN and signs ----

/// Adds an error that changes only the results of NaNs.
void add_nan(table& rows, const char* sentence, const decltype(candidate::code)& of_nan) {
  rows.push_back({sentence, [of_nan](const seen_element& e) {
                    return is_nan_input(e) ? of_nan(e) : by_rule(e, input_of(e));
                  }});
}

/// Returns a number's code with the low bits rounded off as if every code were a number.
std::optional<code> integer_rounding(const seen_element& e, bool truncated) {
  const format_spec from = spec_of(e.conversion.from);
  const format_spec to = spec_of(e.conversion.to);
  const int shift = from.storage_bits - to.storage_bits;
  if (from.exponent_bits != to.exponent_bits || shift <= 0) return std::nullopt;
  const code x = input_of(e);
  const code half = (code{1} << (shift - 1)) - 1;
  const code carried = truncated ? x : x + half + (x >> shift) % 2;
  return carried << (64 - from.storage_bits) >> (64 - to.storage_bits);
}

void add_nans(table& rows) {
  add_nan(
      rows, "another NaN code: the sign of the NaN is kept or dropped", [](const seen_element& e) {
        cast_rule rule = e.conversion.rule;
        rule.nan =
            rule.nan == nan_policy::canonical ? nan_policy::preserve_sign : nan_policy::canonical;
        return by_rule(e, input_of(e), rule);
      });
  add_nan(rows, "another NaN code", [](const seen_element& e) {
    const code got = e.call.got[e.i];
    return is_nan(e.conversion.to, got) ? got : e.call.expected[e.i];
  });
  add_nan(rows, "a NaN is rounded like a number",
          [](const seen_element& e) { return integer_rounding(e, false); });
  add_nan(rows, "a NaN is truncated like a number",
          [](const seen_element& e) { return integer_rounding(e, true); });
  add_nan(rows, "a NaN becomes the largest finite number",
          [](const seen_element& e) { return largest(e, false); });
  add_nan(rows, "a NaN becomes the most negative finite number",
          [](const seen_element& e) { return largest(e, true); });
  add_nan(rows, "a NaN becomes the largest finite number with its sign", [](const seen_element& e) {
    return largest(e, is_negative(e.conversion.from, input_of(e)));
  });
  add_nan(rows, "a NaN becomes Inf", [](const seen_element& e) {
    const double inf =
        std::copysign(HUGE_VAL, is_negative(e.conversion.from, input_of(e)) ? -1 : 1);
    return convert_code(format_id::fp64, e.conversion.to, std::bit_cast<code>(inf),
                        e.conversion.rule)
        .code;
  });
  add_nan(rows, "a NaN becomes 0", [](const seen_element&) { return code{0}; });
}

void add_signs(table& rows) {
  rows.push_back({"-0 lost: an input of -0 becomes +0", [](const seen_element& e) {
                    return value(e) == 0 ? code{0} : by_rule(e, input_of(e));
                  }});
  rows.push_back({"-0 lost: every result of -0 becomes +0", [](const seen_element& e) {
                    const code right = by_rule(e, input_of(e));
                    return classify(e.conversion.to, right) == number_class::zero ? code{0} : right;
                  }});
  rows.push_back(
      {"the sign is lost", [](const seen_element& e) {
         const code right = by_rule(e, input_of(e));
         const double x = decode_double(e.conversion.to, right);
         if (is_nan(e.conversion.to, right) || !std::signbit(x)) return right;
         return convert_code(format_id::fp64, e.conversion.to, std::bit_cast<code>(-x)).code;
       }});
}

// ---- Positions and memory ----

void add_positions(table& rows) {
  const auto add = [&](const char* sentence, auto source) {
    rows.push_back({sentence, [source](const seen_element& e) -> std::optional<code> {
                      const std::size_t from = source(e.i);  // wraps around below 0
                      if (from >= e.call.in.size()) return std::nullopt;
                      return by_rule(e, e.call.in[from]);
                    }});
  };
  add("the neighbour's element: out[i] comes from in[i + 1]", [](std::size_t i) { return i + 1; });
  add("the neighbour's element: out[i] comes from in[i - 1]", [](std::size_t i) { return i - 1; });
  add("the neighbour's element: pairs are swapped", [](std::size_t i) { return i ^ 1; });
}

void add_unwritten(table& rows) {
  const auto unwritten = [](const seen_element& e, std::size_t i) {
    const code before = std::to_integer<code>(fill_of(e.call.count)) * 0x0101010101010101u >>
                        (64 - spec_of(e.conversion.to).storage_bits);
    return e.call.got[i] == before;
  };
  rows.push_back({"tail not written: the last elements of a call keep what the output had before",
                  [unwritten](const seen_element& e) {
                    const bool last = e.i + 1 == e.call.in.size();
                    const bool in_tail = unwritten(e, e.i) && (last || unwritten(e, e.i + 1));
                    return in_tail ? e.call.got[e.i] : by_rule(e, input_of(e));
                  }});
  rows.push_back({"some elements are not written", [unwritten](const seen_element& e) {
                    return unwritten(e, e.i) ? e.call.got[e.i] : by_rule(e, input_of(e));
                  }});
}

}  // namespace

std::vector<candidate> candidates(const conversion_under_test& conversion) {
  table rows;
  if (conversion.rule.rounding == rounding::stochastic) {
    add_random_candidates(rows, conversion);
  }
  add_roundings(rows, conversion);
  add_overflows(rows, conversion);
  add_flushes(rows);
  add_double_roundings(rows, conversion);
  add_nans(rows);
  add_signs(rows);
  add_positions(rows);
  add_unwritten(rows);
  add_other_formats(rows, conversion);
  return rows;
}

}  // namespace samebits::testkit
