// Rotary position embeddings: cos and sin of angles, correctly rounded. Host only.
//
// An angle is a position times a frequency, or a binary32 number. It is reduced to a fraction of a
// turn, in fixed point. Series give cos and sin with an error below `series_error` ulps. If all
// numbers within this error round to one code, that code is the correctly rounded result; else the
// same steps are done with more words.
//
// More words always decide: cos and sin of an algebraic number other than 0 are transcendental
// (Lindemann and Weierstrass), so they are never halfway between two codes. codes_at_zero() has the
// results of the angle 0.
#pragma once

#include <cstdint>
#include <optional>

#include "numerics/bits/encode.hpp"
#include "numerics/bits/word.hpp"
#include "numerics/functions/fixed_point.hpp"
#include "numerics/functions/fixed_point_constants.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics::rotary {

// Errors below are in ulps of the fraction at hand. Every operation of fixed_point.hpp truncates by
// less than an ulp.

/// Words of turns beyond those of the result. They hold a position below 2^63 and the error of
/// power(): 2^63 * 2^12 ulps are less than 2^-20 ulps of the result.
inline constexpr int guard_words = 3;

/// Number of terms after which a series of x^n / n!, |x| < 0.8, is below an ulp of W words.
template <int W>
constexpr std::uint32_t terms_of() {
  std::uint32_t n = 1;
  for (int bits = 0; bits < 32 * W;) {
    ++n;
    bits += 31 - static_cast<int>(leading_zeros(n));  // n >= 2^bits
  }
  return n;
}

/// A number t * 2^-exponent, 1/2 <= t < 1 or t = 0.
template <int W>
struct scaled_fraction {
  fraction<W> t;
  int exponent;
};

/// log2(1 + f * 2^-52) for f < 2^52; error below 60 W ulps.
template <int W>
constexpr fraction<W> log2_of_significand(std::uint64_t f) {
  // ln m = 2 artanh(w), w = (m - 1) / (m + 1) = f / (2^53 + f) < 1/3.
  const std::uint64_t divisor = (std::uint64_t{1} << 53) + f;
  fraction<W> w;
  std::uint64_t rest = f;
  for (std::uint32_t& word : w.word) {
    for (int bits = 0; bits < 32; bits += 8) {  // rest < 2^54, so eight bits more fit
      rest <<= 8;
      word = word << 8 | static_cast<std::uint32_t>(rest / divisor);
      rest %= divisor;
    }
  }
  const fraction<W> square = product(w, w);
  fraction<W> power = w;
  fraction<W> total = w;
  for (std::uint32_t k = 3; !is_zero(power); k += 2) {
    power = product(power, square);
    total = sum(total, quotient(power, k));
  }
  const fraction<W> ln = sum(total, total);
  return sum(ln, product(ln, constant_of<W>(log2_e_table)));
}

/// 2^-x; error below 5 ulps more than that of x.
template <int W>
constexpr fraction<W> exp2_of_minus(const fraction<W>& x) {
  // e^-y = 1 - y (1 - y/2 (1 - y/3 (...)))
  const fraction<W> y = product(x, constant_of<W>(ln_2_table));
  fraction<W> t = complement(fraction<W>{});
  for (std::uint32_t k = terms_of<W>(); k > 0; --k) t = complement(quotient(product(y, t), k));
  return t;
}

/// base^(-i / n) for binary64 bits of a base >= 1 and i < n; error below 2^12 ulps for W <= 40.
template <int W>
constexpr scaled_fraction<W> power(std::uint64_t base, std::uint32_t i, std::uint32_t n) {
  // With base = 2^k * m the exponent of 2 is -(i k + i log2(m)) / n.
  const auto k = static_cast<std::uint64_t>((base >> 52) - 1023);
  std::uint64_t whole = 0;
  const fraction<W> part =
      multiple(log2_of_significand<W>(base & ((std::uint64_t{1} << 52) - 1)), i, whole);
  whole += i * k;
  const fraction<W> x = quotient(part, n, static_cast<std::uint32_t>(whole % n));
  return {exp2_of_minus(x), static_cast<int>(whole / n)};
}

/// A frequency, in radians per position: base^(-i / n), or a binary64 number.
struct frequency {
  std::uint64_t bits;   ///< binary64 bits of the base or of the number, which is finite
  std::uint32_t i = 0;  ///< i < n
  std::uint32_t n = 0;  ///< 0: a number
};

/// Turns of a binary64 number's magnitude, in radians: the fractional part.
template <int W>
constexpr fraction<W> turns_of(std::uint64_t bits) {
  constexpr std::uint64_t hidden = std::uint64_t{1} << 52;
  const auto field = static_cast<int>(bits >> 52 & 2047);
  const std::uint64_t significand = (bits & (hidden - 1)) | (field == 0 ? 0 : hidden);
  std::uint64_t whole = 0;
  // Two words more: the error of the constant is multiplied by the significand.
  const fraction<W + 2> wide =
      multiple(inverse_two_pi<W + 2>((field == 0 ? 1 : field) - 1075), significand, whole);
  return first_words<W>(wide);
}

/// Turns per position, of the magnitude of a frequency; error below 2^12 ulps.
template <int W>
constexpr fraction<W> turns_of(const frequency& f) {
  if (f.n == 0) return turns_of<W>(f.bits);
  const scaled_fraction<W> theta = power<W>(f.bits, f.i, f.n);
  return moved_down(product(theta.t, inverse_two_pi<W>(0)), theta.exponent);
}

/// The fractional part of x * n.
template <int W>
constexpr fraction<W> turns_at(const fraction<W>& x, std::uint64_t n) {
  std::uint64_t whole = 0;
  return multiple(x, n, whole);
}

/// Magnitudes of cos and sin, with their signs.
template <int W>
struct cosine_and_sine {
  fraction<W> cos, sin;
  bool cos_negative, sin_negative;
};

inline constexpr std::uint32_t series_error = 16;  // ulps

/// cos and sin of an angle in turns; error below series_error ulps.
///
/// The angle is octant * pi/4 + a, or in odd octants (octant + 1) * pi/4 - a, with 0 <= a <= pi/4.
/// Errors in ulps: a 4, its square 8, t 8, sin 9.
template <int W>
constexpr cosine_and_sine<W> cosine_and_sine_of(const fraction<W + guard_words>& turns) {
  const std::uint32_t octant = turns.word[0] >> 29;
  fraction<W> part = first_words<W>(moved_up(turns, 3));
  if ((octant & 1) != 0) part = complement(part);
  const fraction<W> a = product(part, constant_of<W>(quarter_pi_table));
  const fraction<W> square = product(a, a);
  fraction<W> cos = complement(fraction<W>{});
  fraction<W> t = cos;
  for (std::uint32_t k = terms_of<W>() / 2 + 1; k > 0; --k) {
    cos = complement(quotient(product(square, cos), (2 * k - 1) * (2 * k)));
    t = complement(quotient(product(square, t), 2 * k * (2 * k + 1)));
  }
  const fraction<W> sin = product(a, t);
  const bool swapped = ((octant + 1) & 2) != 0;
  return {swapped ? sin : cos, swapped ? cos : sin, ((octant + 2) & 4) != 0, octant >= 4};
}

/// Binary64 bits of a fraction times 2^-exponent, rounded to odd; 2^-1074 stands for all positive
/// numbers below 2^-1022.
template <int W>
constexpr std::uint64_t binary64_to_odd(const fraction<W>& x, int exponent) {
  int first = 0;
  while (first < W && x.word[first] == 0) ++first;
  if (first == W) return 0;
  const auto word_at = [&](int i) { return i < W ? std::uint64_t{x.word[i]} : 0; };
  const int up = static_cast<int>(leading_zeros(x.word[first]));
  const std::uint64_t two = word_at(first) << 32 | word_at(first + 1);
  const std::uint64_t top = two << up | (word_at(first + 2) << up) >> 32;
  const int field = 1022 - 32 * first - up - exponent;
  if (field <= 0) return 1;
  bool rest = (top & 2047) != 0 || (word_at(first + 2) << up & 0xFFFFFFFFu) != 0;
  for (int i = first + 3; i < W; ++i) rest = rest || x.word[i] != 0;
  const std::uint64_t significand = top >> 11 & ((std::uint64_t{1} << 52) - 1);
  return static_cast<std::uint64_t>(field) << 52 | significand | (rest ? 1 : 0);
}

/// The code to which all numbers within `error` ulps of x * 2^-exponent round; nothing if these
/// numbers round to different codes.
template <int W>
constexpr std::optional<std::uint32_t> decided_code(const fraction<W>& x, int exponent,
                                                    std::uint32_t error, bool negative,
                                                    format_id to) {
  fraction<W> margin;
  margin.word[W - 1] = error;
  const std::uint64_t sign = negative ? std::uint64_t{1} << 63 : 0;
  const auto rounded = [&](const fraction<W>& v) {
    const std::uint64_t bits = binary64_to_odd(v, exponent) | sign;
    return encode<std::uint64_t>(spec_of(to), cast_rule{}, bits, 0).code;
  };
  const std::uint64_t code = rounded(difference(x, margin));
  if (code != rounded(sum(x, margin))) return std::nullopt;
  return static_cast<std::uint32_t>(code);
}

/// Codes of cos and sin in the destination.
struct rotary_codes {
  std::uint32_t cos, sin;
};

/// Whether truncated turns are so close below a multiple of a quarter turn that the angle may lie
/// above it, where cos or sin has the other sign.
template <int W>
constexpr bool may_pass_a_quarter(const fraction<W + guard_words>& turns) {
  return is_zero(complement(first_words<W>(moved_up(turns, 2))));
}

/// Codes of an angle with the magnitude `turns`, in turns, and the sign `negative`; nothing if W words
/// do not decide.
template <int W>
constexpr std::optional<rotary_codes> decided_codes(const fraction<W + guard_words>& turns,
                                                    bool negative, format_id to) {
  if (may_pass_a_quarter<W>(turns)) return std::nullopt;
  const cosine_and_sine<W> v = cosine_and_sine_of<W>(turns);
  const auto cos = decided_code(v.cos, 0, series_error, v.cos_negative, to);
  const auto sin = decided_code(v.sin, 0, series_error, v.sin_negative != negative, to);
  if (!cos || !sin) return std::nullopt;
  return rotary_codes{*cos, *sin};
}

/// Codes of the angle +0 or -0.
constexpr rotary_codes codes_at_zero(bool negative, format_id to) {
  const auto code = [&](std::uint64_t bits) {
    const std::uint64_t c = encode<std::uint64_t>(spec_of(to), cast_rule{}, bits, 0).code;
    return static_cast<std::uint32_t>(c);
  };
  constexpr std::uint64_t one = 0x3FF0000000000000u;
  return {code(one), code(negative ? std::uint64_t{1} << 63 : 0)};
}

inline constexpr int few_words = 2;  ///< decide nearly all entries
inline constexpr int more_words = 8;
inline constexpr int most_words = 32;

/// Codes of the angle position * frequency. `position` and the frequency are magnitudes above 0, and
/// `negative` is the sign of the angle. `first` is turns_of<few_words + guard_words>(f). Returns
/// nothing if 1024 bits do not decide; no such angle is known.
constexpr std::optional<rotary_codes> codes_of_product(
    const frequency& f, const fraction<few_words + guard_words>& first, std::uint64_t position,
    bool negative, format_id to) {
  const auto few = decided_codes<few_words>(turns_at(first, position), negative, to);
  if (few) return few;
  const auto more = decided_codes<more_words>(
      turns_at(turns_of<more_words + guard_words>(f), position), negative, to);
  if (more) return more;
  return decided_codes<most_words>(turns_at(turns_of<most_words + guard_words>(f), position),
                                   negative, to);
}

/// Codes of a finite angle in radians, binary64 bits. Nothing if 1024 bits do not decide.
constexpr std::optional<rotary_codes> codes_of_angle(std::uint64_t angle, format_id to) {
  const bool negative = angle >> 63 != 0;
  if (angle << 1 == 0) return codes_at_zero(negative, to);
  const frequency f{angle};
  return codes_of_product(f, turns_of<few_words + guard_words>(f), 1, negative, to);
}

/// RN32(base^(-i / n)) as binary32 bits. Nothing if 1024 bits do not decide. The exact number is never
/// halfway between two codes: it is a power of two, or it has no finite binary expansion.
constexpr std::optional<std::uint32_t> rounded_power(const frequency& f) {
  constexpr std::uint32_t error = 1u << 12;  // of power()
  const auto few = power<more_words>(f.bits, f.i, f.n);
  const auto code = decided_code(few.t, few.exponent, error, false, format_id::fp32);
  if (code) return code;
  const auto most = power<most_words>(f.bits, f.i, f.n);
  return decided_code(most.t, most.exponent, error, false, format_id::fp32);
}

}  // namespace samebits::numerics::rotary
