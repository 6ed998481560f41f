// Text conversion: reads and writes the characters; numerics/text/text.hpp handles the numbers.
#include "samebits/text.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "backends/dispatch/refuse.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/bits/layout.hpp"
#include "numerics/bits/random.hpp"
#include "numerics/bits/word.hpp"
#include "numerics/text/big_integer.hpp"
#include "numerics/text/text.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits {
namespace {

using numerics::big_integer;
using numerics::odd_value;
using binary64 = numerics::binary<std::uint64_t>;

// --- Writing ---------------------------------------------------------------------------------

/// A code prepared for the writers, as binary64 bits; binary64 contains every format.
struct writable {
  format_spec spec;
  std::uint64_t magnitude;  ///< binary64 bits without the sign
  std::string sign;         ///< "-" or empty

  writable(format_id format, std::uint64_t code) : spec(spec_of(format)) {
    const auto bits = numerics::decode<std::uint64_t>(spec, code);
    magnitude = bits & ~binary64::sign_bit;
    if (bits != magnitude) sign = "-";
  }
  [[nodiscard]] bool is_finite() const { return magnitude < binary64::inf; }
  [[nodiscard]] std::string special() const {
    return sign + (magnitude == binary64::inf ? "inf" : "nan");
  }
};

/// The decimal digits of an integer.
std::string digits_of(big_integer x) {
  constexpr std::uint32_t chunk = 1'000'000'000;
  std::string reversed;
  do {
    std::uint32_t nine = x.divide(chunk);
    for (int i = 0; i < 9; ++i, nine /= 10) reversed += static_cast<char>('0' + nine % 10);
  } while (!x.is_zero());
  while (reversed.size() > 1 && reversed.back() == '0') reversed.pop_back();
  return {reversed.rbegin(), reversed.rend()};
}

/// digits * 10^exponent in plain notation.
std::string plain(std::string digits, int exponent) {
  if (exponent >= 0) return digits + std::string(static_cast<std::size_t>(exponent), '0');
  const auto decimals = static_cast<std::size_t>(-exponent);
  if (digits.size() <= decimals) digits.insert(0, decimals + 1 - digits.size(), '0');
  return digits.insert(digits.size() - decimals, 1, '.');
}

/// digits * 10^exponent as d.ddde-NN.
std::string scientific(std::string digits, int first_power) {
  if (digits.size() > 1) digits.insert(1, 1, '.');
  const std::string power = std::to_string(std::abs(first_power));
  return digits + (first_power < 0 ? "e-" : "e+") + (power.size() < 2 ? "0" : "") + power;
}

/// The range of powers of ten of the first digit that is written in plain notation.
constexpr int first_plain_power = -4;
constexpr int last_plain_power = 15;
constexpr std::uint64_t exact_integers_end = 10'000'000'000'000'000;  // 10^(last_plain_power + 1)

bool is_short_integer(const odd_value& v) {
  return v.exponent >= 0 && numerics::top_exponent(v) < 54 &&
         (v.sig << v.exponent) < exact_integers_end;
}

// --- Reading ---------------------------------------------------------------------------------

/// A position in a text that advances over expected characters.
class cursor {
 public:
  explicit cursor(std::string_view text) : text_(text) {}

  [[nodiscard]] std::size_t offset() const { return at_; }
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }

  /// The ASCII character at the position, in lower case; NUL at the end.
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    if (text_.size() - at_ <= ahead) return '\0';
    const char c = text_[at_ + ahead];
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  void skip(std::size_t count) { at_ += count; }

  bool take(char c) {
    if (at_end() || peek() != c) return false;
    ++at_;
    return true;
  }
  /// Advances over the longest matching start of `word`; returns whether all of it matched.
  bool take_word(std::string_view word) {
    return std::all_of(word.begin(), word.end(), [this](char c) { return take(c); });
  }
  /// The value of the digit at the position, or -1.
  [[nodiscard]] int digit(int base) const {
    const char c = peek();
    if (c >= '0' && c <= '9') return c - '0';
    return base == 16 && c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

/// Reads an optional + or -; returns true for -.
bool take_sign(cursor& in) {
  if (in.take('-')) return true;
  in.take('+');
  return false;
}

/// Reads an optional sign and at least one digit. The exponent is clamped to a limit far beyond
/// every format. Adding the digit positions of a text of any length to it cannot overflow 64 bits.
bool take_exponent(cursor& in, std::int64_t& exponent) {
  constexpr std::int64_t limit = 100'000'000'000'000'000;
  const bool negative = take_sign(in);
  if (in.digit(10) < 0) return false;
  std::int64_t magnitude = 0;
  for (int d = in.digit(10); d >= 0; in.skip(1), d = in.digit(10)) {
    magnitude = std::min(limit, magnitude * 10 + d);
  }
  exponent = negative ? -magnitude : magnitude;
  return true;
}

/// digits * base^exponent; `count` is the number of digits from the first non-zero digit on.
struct digit_string {
  big_integer digits;
  std::int64_t exponent = 0;
  int count = 0;
};

/// Reads at least one digit, with an optional point. Keeps `kept` significant digits; if a dropped
/// digit is not 0, one further digit 1 stands for all of them.
bool take_digits(cursor& in, int base, int kept, digit_string& out) {
  bool any = false;
  bool after_point = false;
  bool rest = false;
  for (;; in.skip(1)) {
    const int d = in.digit(base);
    if (d < 0) {
      if (after_point || in.peek() != '.') break;
      after_point = true;
      continue;
    }
    any = true;
    if (out.count == kept) {
      rest = rest || d != 0;
      out.exponent += after_point ? 0 : 1;
      continue;
    }
    out.exponent -= after_point ? 1 : 0;
    if (d == 0 && out.count == 0) continue;
    out.digits.multiply_add(static_cast<std::uint32_t>(base), static_cast<std::uint32_t>(d));
    ++out.count;
  }
  if (rest) {
    out.digits.multiply_add(static_cast<std::uint32_t>(base), 1);
    --out.exponent;
    ++out.count;
  }
  return any;
}

bool take_decimal(cursor& in, numerics::exact_number& x) {
  digit_string s;
  if (!take_digits(in, 10, numerics::kept_decimal_digits, s)) return false;
  std::int64_t exponent = 0;
  if (in.take('e') && !take_exponent(in, exponent)) return false;
  x.digits = s.digits;
  x.power_of_10 = s.exponent + exponent;
  const std::int64_t first_power = x.power_of_10 + s.count - 1;
  if (first_power < -numerics::decimal_reach || first_power > numerics::decimal_reach) {
    if (!s.digits.is_zero()) x.digits = big_integer(1);
    x.power_of_10 = first_power < 0 ? -numerics::decimal_reach : numerics::decimal_reach;
  }
  return true;
}

bool take_hexadecimal(cursor& in, numerics::exact_number& x) {
  digit_string s;
  if (!take_digits(in, 16, numerics::kept_hex_digits, s)) return false;
  std::int64_t exponent = 0;
  if (in.take('p') && !take_exponent(in, exponent)) return false;
  x.digits = s.digits;
  x.power_of_2 = 4 * s.exponent + exponent;
  return true;
}

/// The K random bits aligned for rounding. Refuses invalid values.
std::uint64_t dither_of(const cast_rule& rule, const random_bits& random) {
  if (rule.rounding != rounding::stochastic) return 0;
  refuse_if(random.count < 1 || random.count > 32,
            "random.count: expected 1 to 32 random bits, got ", random.count);
  refuse_if(std::uint64_t{random.value} >> random.count != 0, "random.value: expected less than 2^",
            random.count, ", got ", random.value);
  return numerics::align_random<std::uint64_t>(random.value, random.count);
}

}  // namespace

std::string to_shortest(format_id format, std::uint64_t code) {
  const writable w(format, code);
  if (!w.is_finite()) return w.special();
  const odd_value v = numerics::odd_value_of(w.magnitude);
  if (v.sig == 0) return w.sign + "0";
  if (is_short_integer(v)) return w.sign + std::to_string(v.sig << v.exponent);
  numerics::decimal d =
      numerics::shortest_decimal(numerics::interval_of(w.spec, v), numerics::top_exponent(v));
  for (; d.digits % 10 == 0; d.digits /= 10) ++d.exponent;  // 9.9 may have been rounded to 10
  const std::string digits = std::to_string(d.digits);
  const int first_power = d.exponent + static_cast<int>(digits.size()) - 1;
  return w.sign + (first_power < first_plain_power || first_power > last_plain_power
                       ? scientific(digits, first_power)
                       : plain(digits, d.exponent));
}

std::string to_exact_decimal(format_id format, std::uint64_t code) {
  const writable w(format, code);
  if (!w.is_finite()) return w.special();
  const odd_value v = numerics::odd_value_of(w.magnitude);
  big_integer digits(v.sig);
  if (v.exponent >= 0) {
    digits.shift_left(v.exponent);
    return w.sign + digits_of(digits);
  }
  digits.multiply_power_of_5(-v.exponent);  // sig / 2^n = sig * 5^n / 10^n
  return w.sign + plain(digits_of(digits), v.exponent);
}

std::string to_hex_float(format_id format, std::uint64_t code) {
  const writable w(format, code);
  if (!w.is_finite()) return w.special();
  const odd_value v = numerics::odd_value_of(w.magnitude);
  if (v.sig == 0) return w.sign + "0x0p+0";
  const int top = numerics::top_exponent(v);
  std::string text = w.sign + "0x1";
  // The bits after the leading bit, moved to the top of the word and written four at a time.
  std::uint64_t fraction = v.sig << std::countl_zero(v.sig) << 1;
  if (fraction != 0) text += '.';
  for (; fraction != 0; fraction <<= 4) text += "0123456789abcdef"[fraction >> 60];
  return text + (top < 0 ? "p-" : "p+") + std::to_string(std::abs(top));
}

parse_result parse(format_id format, std::string_view text, const cast_rule& rule,
                   const random_bits& random) {
  const std::uint64_t dither = dither_of(rule, random);
  const format_spec to = spec_of(format);
  cursor in(text);
  numerics::exact_number x;
  x.negative = take_sign(in);

  const bool infinite = in.peek() == 'i';
  const bool nan = in.peek() == 'n';
  bool ok = false;
  if (infinite) {
    ok = in.take_word("inf") && (in.at_end() || in.peek() != 'i' || in.take_word("inity"));
  } else if (nan) {
    ok = in.take_word("nan");
  } else if (in.peek() == '0' && in.peek(1) == 'x') {
    in.skip(2);
    ok = take_hexadecimal(in, x);
  } else {
    ok = take_decimal(in, x);
  }
  if (!ok || !in.at_end()) return {false, 0, false, false, in.offset()};

  const std::uint64_t special =
      (infinite ? binary64::inf : binary64::nan) | (x.negative ? binary64::sign_bit : 0);
  const auto r = infinite || nan ? numerics::encode<std::uint64_t>(to, rule, special, dither)
                                 : numerics::encode_exact(to, rule, x, dither);
  return {true, r.code, r.inexact, r.overflow, 0};
}

}  // namespace samebits
