// Text against the oracle: shortest texts by search, readings by exact rationals, other writers.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include "engine/core/sweeps.hpp"
#include "oracle/convert.hpp"
#include "oracle/exact.hpp"
#include "oracle/format_table.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/scalar.hpp"
#include "samebits/text.hpp"
#include "support/effort.hpp"
#include "support/property.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using oracle::cpp_int;
using oracle::cpp_rational;
using support::all_formats;
using support::oracle_of;

/// Uniform bits, not RapidCheck's small integers.
rc::Gen<std::uint64_t> words() {
  return rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<std::uint64_t>());
}

/// A magnitude up to max finite, compact (without padding): any, at either end, or of few bits.
std::uint64_t some_magnitude(const oracle::format& f, std::uint64_t word) {
  const std::uint64_t max = f.max_finite >> f.unused_low_bits;
  const std::uint64_t raw = word >> 3;
  switch (word & 7) {
    case 0: return std::min<std::uint64_t>(raw % 4, max);
    case 1: return max - std::min<std::uint64_t>(raw % 4, max);
    case 2: return (raw % (max + 1)) >> f.mantissa_bits << f.mantissa_bits;  // a power of two
    default: return raw % (max + 1);
  }
}

/// base^|n|.
cpp_int power(int base, std::int64_t n) {
  return boost::multiprecision::pow(cpp_int(base), static_cast<unsigned>(std::abs(n)));
}

cpp_rational value_of(const oracle::format& f, std::uint64_t magnitude) {
  return oracle::rational_of(oracle::decode(f, magnitude << f.unused_low_bits));
}

/// The value after the magnitude; beyond max finite the next with unbounded exponent.
cpp_rational value_above(const oracle::format& f, std::uint64_t magnitude) {
  if (magnitude < f.max_finite >> f.unused_low_bits) return value_of(f, magnitude + 1);
  const cpp_rational v = value_of(f, magnitude);
  return f.zero == oracle::zeros::none ? 2 * v : 2 * v - value_of(f, magnitude - 1);
}

/// digits * 10^exponent in the layout that to_shortest() documents.
std::string layout(std::string digits, int exponent) {
  const int first = exponent + static_cast<int>(digits.size()) - 1;
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  if (first < -4 || first > 15) {
    const std::string n = std::to_string(std::abs(first));
    if (digits.size() > 1) digits.insert(1, ".");
    return digits + (first < 0 ? "e-" : "e+") + (n.size() == 1 ? "0" : "") + n;
  }
  if (first < 0) return "0." + std::string(static_cast<std::size_t>(-first - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(first) + 1;
  if (digits.size() <= whole) return digits + std::string(whole - digits.size(), '0');
  return digits.insert(whole, ".");
}

/// By trying: every decimal of n digits in the interval of a value, for the least n that has one.
std::string searched_shortest(const oracle::format& f, std::uint64_t magnitude) {
  const cpp_rational v = value_of(f, magnitude);
  const bool scale = f.zero == oracle::zeros::none;
  const bool even = magnitude % 2 == 0;
  if (v == 0) return "0";
  if (denominator(v) == 1 && v < power(10, 16)) return numerator(v).str();

  const cpp_rational high = (v + value_above(f, magnitude)) / 2;
  const cpp_rational low = magnitude == 0 ? cpp_rational(0) : (value_of(f, magnitude - 1) + v) / 2;
  const auto inside = [&](const cpp_rational& x) {
    return (x > low || (x == low && (scale || even))) &&
           (x < high || (x == high && even && !scale));
  };
  const int top = static_cast<int>(std::floor(std::log10(v.convert_to<double>()))) + 1;
  for (int n = 1;; ++n) {
    const cpp_int first = power(10, n - 1);
    std::optional<cpp_rational> best;
    std::string text;
    for (int exponent = top - n - 1; exponent <= top - n + 1; ++exponent) {
      const cpp_rational unit =
          exponent < 0 ? cpp_rational(1, power(10, exponent)) : power(10, exponent);
      const cpp_rational start = low / unit;
      const cpp_int floor = numerator(start) / denominator(start);
      cpp_int digits = std::max(first, floor);
      for (; digits < 10 * first && digits * unit <= high; ++digits) {
        const cpp_rational x = digits * unit;
        if (!inside(x)) continue;
        const cpp_rational distance = x < v ? cpp_rational(v - x) : cpp_rational(x - v);
        if (!best || distance < *best || (distance == *best && digits % 2 == 0)) {
          best = distance;
          text = layout(digits.str(), exponent);
        }
      }
    }
    if (best) return text;
  }
}

TEST(ShortestText, IsWhatASearchFindsForEveryCodeUpTo16Bits) {
  for (const oracle::format& f : oracle::format_table) {
    if (f.storage_bits > 16) continue;
    const format_id id = *find_format(f.name);
    for (std::uint64_t code = 0; code <= f.max_finite; ++code) {
      const std::string text = searched_shortest(f, code);
      ASSERT_EQ(to_shortest(id, code), text) << f.name << " " << code;
      if (f.zero != oracle::zeros::both) continue;
      ASSERT_EQ(to_shortest(id, code | (std::uint64_t{1} << (f.code_bits - 1))), "-" + text);
    }
  }
}

/// The digits of std::to_chars, exact where the layout shows an integer.
template <class Float>
std::string standard_shortest(Float x) {
  char buffer[64];
  if (std::trunc(x) == x && std::fabs(static_cast<double>(x)) < 1e16) {
    return {buffer, std::to_chars(buffer, buffer + 64, x, std::chars_format::fixed).ptr};
  }
  std::string text(buffer,
                   std::to_chars(buffer, buffer + 64, x, std::chars_format::scientific).ptr);
  const std::string sign = text[0] == '-' ? "-" : "";
  const auto mark = text.find('e');
  std::string digits = text.substr(sign.size(), mark - sign.size());
  if (digits.size() > 1) digits.erase(1, 1);
  const int first = std::stoi(text.substr(mark + 1));
  return sign + layout(digits, first - static_cast<int>(digits.size()) + 1);
}

template <class Float, class Word>
void expect_standard_digits(format_id f, Word code) {
  const auto x = std::bit_cast<Float>(code);
  if (!std::isfinite(x)) return;
  ASSERT_EQ(to_shortest(f, code), standard_shortest(x)) << name(f) << std::hex << " 0x" << code;
}

TEST(ShortestText, HasTheDigitsOfTheStandardLibrary) {
  std::mt19937_64 engine(20261);
  for (std::uint64_t i = 0; i < 100'000 / support::effort_divisor; ++i) {
    const std::uint64_t word = engine();
    expect_standard_digits<double>(format_id::fp64, word);
    expect_standard_digits<float>(format_id::fp32, static_cast<std::uint32_t>(word));
    // and numbers as people write them
    const double x = std::ldexp(static_cast<double>(word >> 40), -static_cast<int>(word % 40));
    expect_standard_digits<double>(format_id::fp64, std::bit_cast<std::uint64_t>(x));
  }
  for (std::uint32_t field = 0; field < 2047; ++field) {
    const std::uint64_t power_of_two = std::uint64_t{field} << 52;
    for (std::uint64_t i = 0; i < 3; ++i) {  // and the values beside it
      expect_standard_digits<double>(format_id::fp64, power_of_two - 1 + i);
      const auto narrow = static_cast<std::uint32_t>((field % 255 << 23) - 1 + i);
      expect_standard_digits<float>(format_id::fp32, narrow);
    }
  }
}

TEST(WideFormats, ShortestIsWhatASearchFindsAndEveryTextReadsBack) {
  for (const format_id id : {format_id::fp64, format_id::fp32, format_id::tf32}) {
    const oracle::format& f = oracle_of(id);
    support::expect_holds(std::string(f.name), 2000, [&] {
      const std::uint64_t magnitude = some_magnitude(f, *words());
      const std::uint64_t code = magnitude << f.unused_low_bits;
      const std::uint64_t negative = code | std::uint64_t{1} << (f.storage_bits - 1);
      RC_ASSERT(to_shortest(id, code) == searched_shortest(f, magnitude));
      for (const auto write : {to_shortest, to_exact_decimal, to_hex_float}) {
        RC_ASSERT(parse(id, write(id, code)).code == code);
        RC_ASSERT(parse(id, write(id, negative)).code == negative);
        RC_ASSERT(write == to_shortest || !parse(id, write(id, code)).inexact);
      }
    });
  }
}

/// digits * base^exponent, for the parser as text and for the oracle.
struct numeral {
  bool negative = false;
  int base = 10;
  cpp_int digits;
  std::int64_t exponent = 0;

  [[nodiscard]] oracle::exact_value value() const {
    const cpp_int p = power(base == 10 ? 5 : 1, exponent);
    const bool up = exponent >= 0;
    return {oracle::value_kind::finite, negative, up ? digits * p : digits, up ? cpp_int(1) : p,
            static_cast<int>(base == 10 ? exponent : 4 * exponent)};
  }

  /// With the point somewhere, and the exponent that makes up for it.
  [[nodiscard]] std::string text(std::uint64_t word) const {
    std::string s = base == 10 ? digits.str() : digits.str(0, std::ios_base::hex);
    s.insert(0, word % 3, '0');
    s.append(word / 3 % 3, '0');
    const auto decimals = static_cast<std::size_t>(word / 9 % (s.size() + 1));
    const std::int64_t shown =
        exponent + static_cast<std::int64_t>(decimals) - static_cast<std::int64_t>(word / 3 % 3);
    if (decimals != 0 || word / 1024 % 2 != 0) s.insert(s.size() - decimals, ".");
    if (shown != 0 || word / 2048 % 2 != 0) {
      s += base == 10 ? "e" + std::to_string(shown) : "p" + std::to_string(4 * shown);
    }
    return (negative ? "-" : "") + std::string(base == 10 ? "" : "0x") + s;
  }
};

using three_words = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

/// A number to read into a format.
struct reading {
  format_id to = format_id::fp64;
  numeral number;
  random_bits random;
  std::string text;

  friend std::ostream& operator<<(std::ostream& out, const reading& r) {
    return out << "parse(" << name(r.to) << ", \"" << r.text << "\") with R = " << r.random.value
               << ", K = " << r.random.count;
  }
};

/// Between two neighbouring values the fraction at which some decision changes, or a digit of 1
/// above or below it as many places behind as `longest` allows; with the random bits at which the
/// stochastic decision changes there.
reading near_a_decision(format_id to, int base, std::uint64_t longest, const three_words& w) {
  const auto [word, more, look] = w;
  const oracle::format& f = oracle_of(to);
  const std::uint64_t magnitude = some_magnitude(f, word);
  const cpp_rational v = value_of(f, magnitude);
  const int k = 1 + static_cast<int>(more % 32);
  const std::uint64_t units = std::uint64_t{1} << k;
  const std::uint64_t j = (more >> 5 & 1) != 0 ? units / 2 : (more >> 6) % units;
  const cpp_rational x = v + (value_above(f, magnitude) - v) * j / units;
  const std::uint64_t r = (units - j - (look & 1)) % units;

  // x = n / 2^d, so n * 5^d / 10^d; in hexadecimal d is rounded up to fours.
  reading out{
      to, {(word >> 63) != 0, base, numerator(x), 0}, {static_cast<std::uint32_t>(r), k}, {}};
  numeral& n = out.number;
  const auto d = static_cast<unsigned>(msb(denominator(x)));
  const unsigned d16 = (d + 3) / 4;
  if (base == 16) n.digits <<= 4 * d16 - d;
  if (base == 10) n.digits *= power(5, d);
  n.exponent = -static_cast<std::int64_t>(base == 16 ? d16 : d);
  if (const std::uint64_t side = look / 2 % 3; side != 0) {
    const auto behind = static_cast<unsigned>(1 + look / 8 % longest);
    n.digits *= power(base, behind);
    n.exponent -= behind;
    n.digits += side == 1 || n.digits == 0 ? 1 : -1;
  }
  out.text = n.text(look >> 32);
  return out;
}

/// Digits and an exponent that know nothing of the format but its range.
reading anything(format_id to, const three_words& w) {
  const auto [word, more, look] = w;
  reading out{to, {(word & 1) != 0, 10, word, 0}, {static_cast<std::uint32_t>(look), 32}, {}};
  numeral& n = out.number;
  for (std::uint64_t i = 0; i < more % 4; ++i) n.digits = (n.digits << 64) + (more ^ word << i);
  const int minimum = oracle_of(to).min_normal_exponent * 3 / 10 - 8;  // of ten
  const auto first = minimum + static_cast<int>(more / 4 % static_cast<unsigned>(20 - 2 * minimum));
  n.exponent = first - static_cast<int>(n.digits.str().size());
  out.text = n.text(look >> 32);
  return out;
}

std::string outcome(std::uint64_t code, bool inexact, bool overflow) {
  return std::to_string(code) + (inexact ? " inexact" : "") + (overflow ? " overflow" : "");
}

void expect_oracles_reading(const reading& r) {
  const oracle::format& f = oracle_of(r.to);
  const oracle::exact_value value = r.number.value();
  for (const cast_rule& rule : support::every_rule()) {
    const auto [code, inexact, overflow] = oracle::round_with_flags(f, value, rule, r.random);
    const parse_result got = parse(r.to, r.text, rule, r.random);
    if (got == parse_result{true, code, inexact, overflow, 0}) continue;
    RC_FAIL(support::text_of(rule) + ": got " + outcome(got.code, got.inexact, got.overflow) +
            ", expected " + outcome(code, inexact, overflow));
  }
}

/// make(format, words) for every format.
template <class Make>
void check_readings(const std::string& what, Make make) {
  for (const format_id to : all_formats()) {
    support::expect_holds(what + " into " + std::string(name(to)), 300, [&] {
      const auto from_words = [&](const three_words& w) { return make(to, w); };
      expect_oracles_reading(*rc::gen::map(rc::gen::tuple(words(), words(), words()), from_words));
    });
  }
}

TEST(Reading, AtAndBesideDecisionsIsTheOracles) {
  for (const int base : {10, 16}) {
    for (const std::uint64_t longest : {std::uint64_t{40}, std::uint64_t{1200}}) {
      check_readings(
          "base " + std::to_string(base) + ", up to " + std::to_string(longest),
          [&](format_id to, const auto& w) { return near_a_decision(to, base, longest, w); });
    }
  }
}

TEST(Reading, OfAnyDecimalIsTheOracles) { check_readings("any decimal", anything); }

std::uint64_t code_of(double x) { return std::bit_cast<std::uint64_t>(x); }
std::uint64_t code_of(float x) { return std::bit_cast<std::uint32_t>(x); }

TEST(Reading, OfDecimalsIsTheStandardLibrarys) {
  std::mt19937_64 engine(20262);
  for (std::uint64_t i = 0; i < 40'000 / support::effort_divisor; ++i) {
    numeral n{engine() % 2 != 0, 10, engine(), 0};
    for (std::uint64_t k = engine() % 4 + (i % 100 == 0 ? 40 : 0); k > 0; --k) {
      n.digits = (n.digits << 64) + engine();
    }
    n.exponent = static_cast<std::int64_t>(engine() % 700) - 380;
    const std::string text = n.text(engine());
    const auto same = [&](format_id f, auto x) {
      if (std::from_chars(text.data(), text.data() + text.size(), x).ec != std::errc{}) return;
      ASSERT_EQ(parse(f, text).code, code_of(x)) << text;
    };
    same(format_id::fp64, double{});
    same(format_id::fp32, float{});
  }
}

}  // namespace
}  // namespace samebits
