// Codes by family, from the formats' own tables.
#include "engine/inputs/families.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <set>
#include <stdexcept>

#include "numerics/bits/encode.hpp"
#include "numerics/bits/layout.hpp"

namespace samebits::support {
namespace {

using numerics::magnitude_bits;
using numerics::min_exponent;

std::uint64_t low_mask(int bits) { return bits == 0 ? 0 : ~std::uint64_t{0} >> (64 - bits); }

/// The number significand * 2^exponent.
struct dyadic {
  std::uint64_t significand = 0;
  int exponent = 0;
};

std::uint64_t padded(const format_spec& f, std::uint64_t code) { return code << f.padding_bits; }

std::uint64_t sign_bit(const format_spec& f) {
  return numerics::has_sign(f) ? padded(f, numerics::sign_mask(f)) : 0;
}

/// Largest code without its sign.
std::uint64_t magnitude_mask(const format_spec& f) {
  return padded(f, low_mask(magnitude_bits(f)));
}

std::uint64_t max_code(const format_spec& f) { return padded(f, numerics::max_finite(f)); }

/// The exponent of the last bit of the smallest codes; e8m0 has no subnormals.
int min_subnormal_exponent(const format_spec& f) {
  return f.special == specials::scale ? -f.bias : min_exponent(f) - f.mantissa_bits;
}
int min_normal_exponent(const format_spec& f) {
  return f.special == specials::scale ? -f.bias : min_exponent(f);
}

dyadic value_of_magnitude(const format_spec& f, std::uint64_t code) {
  const std::uint64_t compact = code >> f.padding_bits;
  const auto field = static_cast<int>(compact >> f.mantissa_bits);
  const std::uint64_t mantissa = compact & low_mask(f.mantissa_bits);
  if (field == 0 && f.special != specials::scale) {
    return {mantissa, 1 - f.bias - f.mantissa_bits};
  }
  return {(std::uint64_t{1} << f.mantissa_bits) + mantissa, field - f.bias - f.mantissa_bits};
}

/// The number halfway between neighbours of one grid.
dyadic midpoint(const dyadic& a, const dyadic& b) {
  const int minimum = std::min(a.exponent, b.exponent);
  return {(a.significand << (a.exponent - minimum)) + (b.significand << (b.exponent - minimum)),
          minimum - 1};
}

std::uint64_t with_random_sign(const format_spec& f, std::uint64_t code, const word_source& next) {
  return next() % 2 == 0 ? code : code ^ sign_bit(f);
}

/// Moves a magnitude by whole source ulps, without leaving the magnitudes.
std::uint64_t moved(const format_spec& f, std::uint64_t magnitude, int ulps) {
  const std::uint64_t unit = padded(f, 1);
  for (; ulps > 0 && magnitude < magnitude_mask(f); --ulps) magnitude += unit;
  for (; ulps < 0 && magnitude != 0; ++ulps) magnitude -= unit;
  return magnitude;
}

/// The source's magnitude code next to a number.
std::uint64_t nearest_magnitude(const format_spec& from, const dyadic& d) {
  return numerics::encode_scaled(from, {rounding::nearest_even, overflow::saturate}, false,
                                 d.significand, d.exponent, 0)
      .code;
}

std::uint64_t draw_special(const format_spec& from, const word_source& next) {
  const std::uint64_t mantissa = low_mask(from.mantissa_bits);
  const std::uint64_t top = low_mask(from.exponent_bits) << from.mantissa_bits;
  const auto one_bit = [&] {  // of the mantissa, or the last one of the exponent
    return std::uint64_t{1} << below(from.mantissa_bits + 1, next);
  };
  const std::uint64_t kinds[] = {
      0,
      top,                               // Inf, where that is Inf
      top | mantissa,                    // NaN of all ones
      top | (next() & mantissa),         // NaN with a payload
      top | (next() & (mantissa >> 1)),  // signalling NaN
      top | one_bit(),                   // NaN with one payload bit
      next() & mantissa,                 // subnormal
      one_bit(),                         // subnormal power of two, or min normal
  };
  std::uint64_t code = padded(from, one_of(kinds, next));
  if (next() % 4 == 0) code = moved(from, code, next() % 2 == 0 ? 1 : -1);
  return with_random_sign(from, code, next);
}

std::uint64_t draw_edge(const format_spec& from, const format_spec& to, const word_source& next) {
  const dyadic max = value_of_magnitude(to, max_code(to));
  const dyadic beyond{max.significand + 1, max.exponent};
  const int top = static_cast<int>(std::bit_width(max.significand)) + max.exponent;
  const int least = min_subnormal_exponent(to);
  const int power = least - 4 + static_cast<int>(below(top - least + 8, next));
  const dyadic edges[] = {
      max,
      beyond,
      midpoint(max, beyond),
      {max.significand + 2, max.exponent},
      {1, top},  // the next power of two
      {1, min_normal_exponent(to)},
      {1, min_normal_exponent(to) - 1},
      {1, least},
      {1, least - 1},
      {3, least - 1},
      {1, least - 2},
      {1, 0},
      {1, power},
      {1, power},
  };
  const int ulps = static_cast<int>(below(5, next)) - 2;
  return with_random_sign(from, moved(from, nearest_magnitude(from, one_of(edges, next)), ulps),
                          next);
}

enum class step_point : std::uint8_t { midpoint, lower_end };

/// A value beside two neighbouring magnitudes of the destination, among them max and one beyond.
std::uint64_t draw_on_step(const format_spec& from, const format_spec& to, step_point where,
                           int ulps, const word_source& next) {
  const std::uint64_t max = numerics::max_finite(to);
  std::uint64_t number = next() % (max + 1);
  if (next() % 8 == 0) number %= 4;                // the smallest subnormals
  if (next() % 8 == 0) number = max - number % 4;  // the largest values
  const dyadic lower = value_of_magnitude(to, padded(to, number));
  const dyadic upper = number == max ? dyadic{lower.significand + 1, lower.exponent}
                                     : value_of_magnitude(to, padded(to, number + 1));
  const dyadic target = where == step_point::midpoint ? midpoint(lower, upper) : lower;
  return with_random_sign(from, moved(from, nearest_magnitude(from, target), ulps), next);
}

/// How far a code is from +0, or from 1 in e8m0, which has no zero. Every candidate of
/// simpler_codes() has less.
struct complexity {
  bool not_zero;
  int mantissa_bits_set;
  int exponent_distance;
  int other_bits_set;
  auto operator<=>(const complexity&) const = default;
};

struct code_fields {
  std::uint64_t other;  ///< sign and ignored bits, in place
  std::uint64_t exponent;
  std::uint64_t mantissa;
};

code_fields split(const format_spec& f, std::uint64_t code) {
  const std::uint64_t compact = code >> f.padding_bits;
  return {code & ~magnitude_mask(f), (compact >> f.mantissa_bits) & low_mask(f.exponent_bits),
          compact & low_mask(f.mantissa_bits)};
}

std::uint64_t join(const format_spec& f, const code_fields& parts) {
  return parts.other | padded(f, (parts.exponent << f.mantissa_bits) | parts.mantissa);
}

complexity complexity_of(const format_spec& f, std::uint64_t code) {
  const code_fields parts = split(f, code);
  const bool has_zero = f.special != specials::scale;
  return {has_zero && code != 0, std::popcount(parts.mantissa),
          std::abs(static_cast<int>(parts.exponent) - f.bias), std::popcount(parts.other)};
}

}  // namespace

std::uint64_t draw_code(code_family family, format_id from, format_id to, const word_source& next) {
  const format_spec source = spec_of(from), target = spec_of(to);
  switch (family) {
    case code_family::uniform: return next() >> (64 - source.storage_bits);
    case code_family::special: return draw_special(source, next);
    case code_family::edge: return draw_edge(source, target, next);
    case code_family::tie: return draw_on_step(source, target, step_point::midpoint, 0, next);
    case code_family::near_tie: {
      const int ulps = 1 + static_cast<int>(below(2, next));
      return draw_on_step(source, target, step_point::midpoint, next() % 2 == 0 ? ulps : -ulps,
                          next);
    }
    case code_family::on_grid:
      return draw_on_step(source, target, step_point::lower_end,
                          static_cast<int>(below(5, next)) - 2, next);
  }
  throw std::invalid_argument("support::draw_code: family is not a code_family value");
}

std::uint64_t draw_any_code(format_id from, format_id to, const word_source& next) {
  const auto family = static_cast<code_family>(next() % code_family_count);
  return draw_code(family, from, to, next);
}

std::vector<std::uint64_t> special_codes(format_id format) {
  const format_spec f = spec_of(format);
  const std::uint64_t mantissa = numerics::mantissa_mask(f), all = numerics::magnitude_mask(f);
  const std::uint64_t max = numerics::max_finite(f);
  const std::uint64_t one = static_cast<std::uint64_t>(f.bias) << f.mantissa_bits;
  std::vector<std::uint64_t> magnitudes{
      0,       2,       mantissa, mantissa + 2, max - 1, max,     max + 1,
      max + 2, all - 1, all,      one - 1,      one,     one + 1, one + (mantissa + 1) / 2};
  for (int bit = 0; bit <= f.mantissa_bits; ++bit) {
    magnitudes.push_back(std::uint64_t{1} << bit);              // up to the smallest normal number
    magnitudes.push_back(max + 1 + (std::uint64_t{1} << bit));  // NaN, if max + 1 is Inf
  }
  std::set<std::uint64_t> codes;
  for (const std::uint64_t magnitude : magnitudes) {
    if (magnitude > all) continue;
    codes.insert({padded(f, magnitude), padded(f, magnitude) | sign_bit(f)});
  }
  return {codes.begin(), codes.end()};
}

std::vector<std::uint64_t> simpler_codes(format_id from, std::uint64_t code) {
  const format_spec f = spec_of(from);
  if (from != format_id::e8m0 && (code & magnitude_mask(f)) == 0) {  // 1.0 is no simpler than 0
    return code == 0 ? std::vector<std::uint64_t>{} : std::vector<std::uint64_t>{0};
  }
  const code_fields parts = split(f, code);
  const auto bias = static_cast<std::uint64_t>(f.bias);
  std::vector<code_fields> candidates{
      {0, 0, 0},
      {0, bias, 0},
      {parts.other, parts.exponent, 0},
      {parts.other, parts.exponent + 1, 0},
      {0, parts.exponent, parts.mantissa},
      {parts.other, bias, parts.mantissa},
      {parts.other, (parts.exponent + bias) / 2, parts.mantissa},
      {parts.other, (parts.exponent + bias + 1) / 2, parts.mantissa},
      {parts.other, parts.exponent + (parts.exponent < bias ? 1 : std::uint64_t(-1)),
       parts.mantissa},
      {parts.other, parts.exponent, parts.mantissa & (parts.mantissa - 1)},
  };
  for (int i = f.mantissa_bits; i-- > 0;) {  // keep one bit; then drop one bit
    candidates.push_back({parts.other, parts.exponent, parts.mantissa & std::uint64_t{1} << i});
  }
  for (int i = f.mantissa_bits; i-- > 0;) {
    candidates.push_back({parts.other, parts.exponent, parts.mantissa & ~(std::uint64_t{1} << i)});
  }
  const complexity now = complexity_of(f, code);
  std::vector<std::uint64_t> simpler;
  for (const code_fields& candidate : candidates) {
    if (candidate.exponent > low_mask(f.exponent_bits)) continue;
    const std::uint64_t c = join(f, candidate);
    const bool known = std::find(simpler.begin(), simpler.end(), c) != simpler.end();
    if (!known && complexity_of(f, c) < now) simpler.push_back(c);
  }
  return simpler;
}

}  // namespace samebits::support
