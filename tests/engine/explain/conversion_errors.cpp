// The usual errors of conversions. A row is a sentence and a function of an element.
#include <bit>
#include <cmath>
#include <utility>

#include "engine/explain/errors.hpp"
#include "samebits/scalar.hpp"

namespace samebits::testkit {
namespace {

using code = std::uint64_t;

/// Element `i` of a call.
struct element {
  const conversion_under_test& c;
  const seen_call& call;
  std::size_t i;

  [[nodiscard]] code input() const { return call.in.codes[i]; }
  [[nodiscard]] code got() const { return call.got[0][i]; }
  [[nodiscard]] code expected() const { return call.expected[0][i]; }
  [[nodiscard]] code right(code of_input) const { return converted_code(c, of_input, i); }
  [[nodiscard]] code right() const { return right(input()); }
  [[nodiscard]] double value() const { return decode_double(c.from, input()); }
  [[nodiscard]] bool is_nan_input() const { return is_nan(c.from, input()); }
};

code target_code(const conversion_under_test& c, double x, const cast_rule& rule = {}) {
  return convert_code(format_id::fp64, c.to, std::bit_cast<code>(x), rule).code;
}

/// The largest finite number of the target, with a sign.
code largest(const element& e, bool negative) {
  const double max = decode_double(e.c.to, max_finite(e.c.to));
  return target_code(e.c, negative ? -max : max);
}

bool is_negative_input(const element& e) { return is_negative(e.c.from, e.input()); }
bool is_subnormal(format_id f, code c) { return classify(f, c) == number_class::subnormal; }

/// Whether the right result is beyond the largest finite number before the overflow policy.
bool overflows(const element& e) {
  return convert_code(e.c.from, e.c.to, e.input(), e.c.rule, random_at(e.c, e.i)).overflow ||
         classify(e.c.from, e.input()) == number_class::infinite;
}

class table {
 public:
  explicit table(const conversion_under_test& c) : c_(c) {}

  /// Adds an error: code(element) is a code, or nothing.
  template <class Code>
  void add(std::string sentence, const Code& of) {
    rows_.push_back({std::move(sentence), [c = c_, of](const seen_call& call) {
                       predicted_codes codes;
                       codes.reserve(call.in.codes.size());
                       for (std::size_t i = 0; i < call.in.codes.size(); ++i) {
                         codes.push_back(of(element{c, call, i}));
                       }
                       return std::optional(prediction{std::move(codes)});
                     }});
  }
  /// Adds a conversion under another setting, which change(conversion) makes.
  template <class Change>
  void add_setting(std::string sentence, const Change& change) {
    conversion_under_test other = c_;
    change(other);
    add(std::move(sentence),
        [other](const element& e) { return converted_code(other, e.input(), e.i); });
  }
  /// Adds a rounding twice: with its own results at overflow, and with those of the tested rule.
  template <class Code>
  void add_rounding(const std::string& sentence, const Code& of) {
    add(sentence, of);
    add(sentence, [of](const element& e) { return overflows(e) ? e.right() : of(e); });
  }
  /// Adds an error that changes only the results of NaNs.
  template <class Code>
  void add_nan(const char* sentence, const Code& of) {
    add(sentence, [of](const element& e) -> std::optional<code> {
      return e.is_nan_input() ? of(e) : e.right();
    });
  }
  /// Adds a kernel that leaves elements first(n) .. n - 1 of a call unwritten: whatever is there
  /// fits if at least a tenth of it is wrong.
  template <class First>
  void add_tail(std::string sentence, const First& first) {
    const auto of = [first](const seen_call& call) {
      prediction result = predict(call.expected);
      std::size_t n = call.in.codes.size(), begin = first(n), wrong = 0;
      for (std::size_t i = begin; i < n; ++i) wrong += call.got[0][i] != call.expected[0][i];
      const std::size_t end = 10 * wrong < n - begin ? begin : n;
      for (std::size_t i = begin; i < end; ++i) result[0][i] = call.got[0][i];
      return std::optional(std::move(result));
    };
    rows_.push_back({std::move(sentence), of, true});
  }
  /// Adds an error that replaces some elements by zero, with or without their sign.
  template <class Replaces>
  void add_flush(const std::string& sentence, const Replaces& replaces) {
    add(sentence, [replaces](const element& e) {
      return replaces(e) ? target_code(e.c, std::copysign(0.0, e.value())) : e.right();
    });
    add(sentence + " without their sign",
        [replaces](const element& e) { return replaces(e) ? code{0} : e.right(); });
  }
  /// Adds other random bits: change(bits, limit) returns others, below the limit 2^K.
  template <class Change>
  void add_bits(const char* sentence, const Change& change) {
    add(sentence, [change](const element& e) {
      random_bits r = random_at(e.c, e.i);
      const std::uint64_t limit = std::uint64_t{1} << r.count;
      r.value = static_cast<std::uint32_t>(change(e, r.value, limit) % limit);
      return convert_code(e.c.from, e.c.to, e.input(), e.c.rule, r).code;
    });
  }

  [[nodiscard]] const conversion_under_test& conversion() const { return c_; }
  [[nodiscard]] std::vector<candidate> rows() { return std::move(rows_); }

 private:
  conversion_under_test c_;
  std::vector<candidate> rows_;
};

// ---- Random bits ----

void add_random(table& rows) {
  using tested = conversion_under_test;
  const random_stream& random = rows.conversion().random;
  rows.add_setting("random index too large by one", [](tested& c) { ++c.random.offset; });
  rows.add_setting("random index too small by one", [](tested& c) { --c.random.offset; });
  if (random.offset != 0) {
    rows.add_setting("random offset ignored", [](tested& c) { c.random.offset = 0; });
  }
  if (random.stream != 0) {
    rows.add_setting("random stream ignored", [](tested& c) { c.random.stream = 0; });
  }
  rows.add("the same random index for every element: the first",
           [](const element& e) { return converted_code(e.c, e.input(), 0); });
  for (const int other : {random.bits - 1, random.bits + 1}) {
    if (other < 1 || other > 32) continue;
    rows.add_setting(
        "K = " + std::to_string(other) + " random bits instead of " + std::to_string(random.bits),
        [other](tested& c) { c.random.bits = other; });
  }
  using word = std::uint64_t;
  rows.add_bits("the highest random bit is missing",
                [](const element&, word r, word limit) { return r % (limit / 2); });
  rows.add_bits("one random bit too few: R is shifted down by one",
                [](const element&, word r, word) { return r / 2; });
  rows.add_bits("rounded away where v * 2^K + R > 2^K instead of >=",
                [](const element&, word r, word) { return r == 0 ? 0 : r - 1; });
  rows.add_bits("rounded away where R < v * 2^K: the random bits are complemented",
                [](const element&, word r, word limit) { return limit - 1 - r; });
  rows.add_bits("the low K bits of the random word instead of the high ones",
                [](const element& e, word, word) {
                  const random_stream& s = e.c.random;
                  return word{random_word(s.seed, s.stream, s.offset + e.i, 32)};
                });
}

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

code rounded(const element& e, rounding mode, const random_bits& random = {}) {
  cast_rule rule = e.c.rule;
  rule.rounding = mode;
  return convert_code(e.c.from, e.c.to, e.input(), rule, random).code;
}

void add_roundings(table& rows) {
  const rounding asked = rows.conversion().rule.rounding;
  for (int i = 0; i < enum_count<rounding>; ++i) {
    const rounding other = static_cast<rounding>(i);
    if (other == asked || other == rounding::stochastic) continue;
    rows.add_rounding(instead(other, asked),
                      [other](const element& e) { return rounded(e, other); });
  }
  rows.add_rounding("rounded away from zero instead of " + text_of(asked), [](const element& e) {
    return rounded(e, e.value() < 0 ? rounding::downward : rounding::upward);
  });
  // Stochastic rounding goes away from zero iff floor(v * 2^32) + R >= 2^32. With R = 2^31 - 1
  // this means v > 1/2 for sources of at most 32 bits.
  if (spec_of(rows.conversion().from).storage_bits > 32) return;
  const std::string to_zero =
      asked == rounding::nearest_even
          ? "ties toward zero instead of to even"
          : "rounded to nearest with ties toward zero instead of " + text_of(asked);
  rows.add_rounding(to_zero, [](const element& e) {
    return rounded(e, rounding::stochastic, {0x7FFFFFFF, 32});
  });
}

void add_double_roundings(table& rows) {
  const conversion_under_test& c = rows.conversion();
  for (const rounding first : {rounding::nearest_even, rounding::toward_zero}) {
    for (const format_id between :
         {format_id::fp16, format_id::bf16, format_id::tf32, format_id::fp32}) {
      if (between == c.from || between == c.to) continue;
      const std::string how = first == rounding::toward_zero ? " (truncated)" : "";
      rows.add("rounded twice: to " + std::string(name(between)) + how + ", then to " +
                   std::string(name(c.to)),
               [first, between](const element& e) {
                 const cast_rule rule{first, overflow::ieee, nan_policy::preserve_sign};
                 const code middle = convert_code(e.c.from, between, e.input(), rule).code;
                 return convert_code(between, e.c.to, middle, e.c.rule, random_at(e.c, e.i)).code;
               });
    }
  }
}

// ---- Overflow and subnormal numbers ----

std::string text_of(overflow policy, const std::string& beyond) {
  switch (policy) {
    case overflow::ieee: return beyond + " on overflow";
    case overflow::saturate: return "saturated to the largest finite number on overflow";
    case overflow::saturate_finite: return "finite numbers saturated and Inf kept on overflow";
  }
  return "?";
}

void add_overflows(table& rows) {
  const overflow asked = rows.conversion().rule.overflow;
  const bool has_inf = spec_of(rows.conversion().to).special == specials::ieee;
  const std::string beyond = has_inf ? "Inf" : "NaN";
  for (int i = 0; i < enum_count<overflow>; ++i) {
    const auto other = static_cast<overflow>(i);
    if (other == asked) continue;
    rows.add_setting(text_of(other, beyond) + " instead of: " + text_of(asked, beyond),
                     [other](conversion_under_test& c) { c.rule.overflow = other; });
  }
  rows.add("overflow decided before rounding: everything above the largest finite number",
           [](const element& e) {
             const double x = e.value();
             const double max = decode_double(e.c.to, max_finite(e.c.to));
             const bool beyond_max = std::isfinite(x) && std::abs(x) > max;
             return beyond_max ? target_code(e.c, std::copysign(0x1p1000, x), e.c.rule) : e.right();
           });
}

void add_flushes(table& rows) {
  const auto input = [](const element& e) { return is_subnormal(e.c.from, e.input()); };
  const auto result = [](const element& e) { return is_subnormal(e.c.to, e.right()); };
  rows.add_flush("subnormal inputs flushed to zero", input);
  rows.add_flush("subnormal results flushed to zero", result);
  rows.add_flush("results below the smallest normal number flushed to zero before rounding",
                 [](const element& e) {
                   const double x = std::abs(e.value());
                   return x > 0 && x < decode_double(e.c.to, min_normal(e.c.to));
                 });
  rows.add_flush("subnormal inputs and subnormal results flushed to zero",
                 [=](const element& e) { return input(e) || result(e); });
}

// ---- NaN, signs and formats ----

/// A number's code with the low bits rounded off as if every code were a number.
std::optional<code> integer_rounding(const element& e, bool truncated) {
  const format_spec from = spec_of(e.c.from), to = spec_of(e.c.to);
  const int shift = from.storage_bits - to.storage_bits;
  if (from.exponent_bits != to.exponent_bits || shift <= 0) return std::nullopt;
  const code x = e.input();
  const code half = (code{1} << (shift - 1)) - 1;
  const code carried = truncated ? x : x + half + (x >> shift) % 2;
  return carried << (64 - from.storage_bits) >> (64 - to.storage_bits);
}

void add_nans(table& rows) {
  rows.add_setting("another NaN code: the sign of the NaN is kept or dropped",
                   [](conversion_under_test& c) {
                     const bool canonical = c.rule.nan == nan_policy::canonical;
                     c.rule.nan = canonical ? nan_policy::preserve_sign : nan_policy::canonical;
                   });
  rows.add_nan("another NaN code",
               [](const element& e) { return is_nan(e.c.to, e.got()) ? e.got() : e.expected(); });
  rows.add_nan("a NaN is rounded like a number",
               [](const element& e) { return integer_rounding(e, false); });
  rows.add_nan("a NaN is truncated like a number",
               [](const element& e) { return integer_rounding(e, true); });
  rows.add_nan("a NaN becomes the largest finite number",
               [](const element& e) { return largest(e, false); });
  rows.add_nan("a NaN becomes the most negative finite number",
               [](const element& e) { return largest(e, true); });
  rows.add_nan("a NaN becomes the largest finite number with its sign",
               [](const element& e) { return largest(e, is_negative_input(e)); });
  rows.add_nan("a NaN becomes Inf", [](const element& e) {
    return target_code(e.c, is_negative_input(e) ? -HUGE_VAL : HUGE_VAL, e.c.rule);
  });
  rows.add_nan("a NaN becomes 0", [](const element&) { return code{0}; });
  rows.add_nan("a NaN becomes 0 of the opposite sign, as in ml_dtypes", [](const element& e) {
    return target_code(e.c, is_negative_input(e) ? 0.0 : -0.0);
  });
  rows.add("low bits cut off, also those of a NaN",
           [](const element& e) { return integer_rounding(e, true); });
}

void add_signs(table& rows) {
  rows.add("-0 lost: an input of -0 becomes +0",
           [](const element& e) { return e.value() == 0 ? code{0} : e.right(); });
  rows.add("-0 lost: every result of -0 becomes +0", [](const element& e) {
    const code right = e.right();
    return classify(e.c.to, right) == number_class::zero ? code{0} : right;
  });
  rows.add("the sign is lost", [](const element& e) {
    const code right = e.right();
    const double x = decode_double(e.c.to, right);
    return is_nan(e.c.to, right) || !std::signbit(x) ? right : target_code(e.c, -x);
  });
}

void add_other_formats(table& rows) {
  const format_id asked = rows.conversion().to;
  for (int i = 0; i < format_count; ++i) {
    const format_id other = format_at(i);
    if (other == asked || storage_bytes(other) != storage_bytes(asked)) continue;
    rows.add_setting(
        "codes of " + std::string(name(other)) + " instead of " + std::string(name(asked)),
        [other](conversion_under_test& c) { c.to = other; });
  }
}

// ---- Positions and memory ----

void add_positions(table& rows) {
  const auto add = [&](const char* sentence, auto source) {
    rows.add(sentence, [source](const element& e) -> std::optional<code> {
      const std::size_t from = source(e.i);  // wraps around below 0
      if (from >= e.call.in.codes.size()) return std::nullopt;
      return e.right(e.call.in.codes[from]);
    });
  };
  add("the neighbour's element: out[i] comes from in[i + 1]", [](std::size_t i) { return i + 1; });
  add("the neighbour's element: out[i] comes from in[i - 1]", [](std::size_t i) { return i - 1; });
  add("the neighbour's element: pairs are swapped", [](std::size_t i) { return i ^ 1; });
}

void add_unwritten(table& rows) {
  const auto unwritten = [](const element& e, std::size_t i) {
    return e.call.got[0][i] == unwritten_code(e.call.got[0].size(), e.c.to);
  };
  rows.add("tail not written: the last elements of a call keep what the output had before",
           [unwritten](const element& e) {
             const bool last = e.i + 1 == e.call.in.codes.size();
             return unwritten(e, e.i) && (last || unwritten(e, e.i + 1)) ? e.got() : e.right();
           });
  rows.add("some elements are not written",
           [unwritten](const element& e) { return unwritten(e, e.i) ? e.got() : e.right(); });
  for (std::size_t width = 1; width <= 1024; width *= 2) {
    const std::string last = width == 1 ? "last element" : "last n mod " + std::to_string(width);
    rows.add_tail("tail not written: the " + last + " of a call of n elements",
                  [width](std::size_t n) { return n - (width == 1 ? n != 0 : n % width); });
  }
  for (std::size_t count = 65536; count >= 32; count /= 2) {
    rows.add_tail("tail not written: the elements after the first " + std::to_string(count),
                  [count](std::size_t n) { return n < count ? n : count; });
  }
}

}  // namespace

std::vector<candidate> conversion_errors(const conversion_under_test& conversion) {
  table rows(conversion);
  if (conversion.rule.rounding == rounding::stochastic) add_random(rows);
  add_roundings(rows);
  add_overflows(rows);
  add_flushes(rows);
  add_double_roundings(rows);
  add_nans(rows);
  add_signs(rows);
  add_positions(rows);
  add_unwritten(rows);
  add_other_formats(rows);
  return rows.rows();
}

explanation explained(const conversion_under_test& conversion, const runner& calls) {
  return explain(calls.what(), calls.seen(), conversion_errors(conversion));
}

}  // namespace samebits::testkit
