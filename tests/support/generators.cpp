// Draws from words, shrinking, and their packaging as RapidCheck generators.
#include "support/generators.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "oracle/convert.hpp"
#include "oracle/exact.hpp"
#include "support/grid_step.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

std::uint64_t low_mask(int bits) { return bits == 0 ? 0 : ~std::uint64_t{0} >> (64 - bits); }

std::uint64_t below(std::uint64_t limit, const word_source& next) { return next() % limit; }

template <class T>
const T& one_of(const std::vector<T>& values, const word_source& next) {
  return values[below(values.size(), next)];
}

std::uint64_t sign_bit(const oracle::format& f) {
  return f.sign_bits == 1 ? std::uint64_t{1} << (f.code_bits - 1) : 0;
}

/// Largest code without its sign.
std::uint64_t magnitude_mask(const oracle::format& f) {
  return low_mask(f.code_bits - f.sign_bits) & ~low_mask(f.unused_low_bits);
}

std::uint64_t with_random_sign(const oracle::format& f, std::uint64_t code,
                               const word_source& next) {
  return next() % 2 == 0 ? code : code ^ sign_bit(f);
}

/// Moves a magnitude by whole source ulps, without leaving the magnitudes.
std::uint64_t moved(const oracle::format& f, std::uint64_t magnitude, int ulps) {
  const std::uint64_t unit = std::uint64_t{1} << f.unused_low_bits;
  for (; ulps > 0 && magnitude < magnitude_mask(f); --ulps) magnitude += unit;
  for (; ulps < 0 && magnitude != 0; ++ulps) magnitude -= unit;
  return magnitude;
}

/// The source's magnitude code next to significand * 2^exponent.
std::uint64_t nearest_magnitude(const oracle::format& from, const oracle::dyadic& d) {
  oracle::exact_value x;
  x.numerator = d.significand;
  x.exponent = d.exponent;
  return oracle::round_exact(from, x, {rounding::nearest_even, overflow::saturate});
}

std::uint64_t draw_special(const oracle::format& from, const word_source& next) {
  const std::uint64_t mantissa = low_mask(from.mantissa_bits);
  const std::uint64_t top = low_mask(from.exponent_bits) << from.mantissa_bits;
  const auto one_bit = [&] {  // of the mantissa, or the last one of the exponent
    return std::uint64_t{1} << below(static_cast<std::uint64_t>(from.mantissa_bits) + 1, next);
  };
  const std::vector<std::uint64_t> kinds{
      0,
      top,                               // Inf, where that is Inf
      top | mantissa,                    // NaN of all ones
      top | (next() & mantissa),         // NaN with a payload
      top | (next() & (mantissa >> 1)),  // signalling NaN
      top | one_bit(),                   // NaN with one payload bit
      next() & mantissa,                 // subnormal
      one_bit(),                         // subnormal power of two, or min normal
  };
  std::uint64_t code = one_of(kinds, next) << from.unused_low_bits;
  if (next() % 4 == 0) code = moved(from, code, next() % 2 == 0 ? 1 : -1);
  return with_random_sign(from, code, next);
}

std::uint64_t draw_edge(const oracle::format& from, const oracle::format& to,
                        const word_source& next) {
  const oracle::dyadic max = oracle::decode_magnitude(to, to.max_finite);
  const oracle::dyadic beyond{max.significand + 1, max.exponent};
  const int top = static_cast<int>(std::bit_width(max.significand)) + max.exponent;
  std::vector<oracle::dyadic> edges{
      max,
      beyond,
      oracle::midpoint(max, beyond),
      {max.significand + 2, max.exponent},
      {1, top},  // the next power of two
      {1, to.min_normal_exponent},
      {1, to.min_normal_exponent - 1},
      {1, to.min_subnormal_exponent},
      {1, to.min_subnormal_exponent - 1},
      {3, to.min_subnormal_exponent - 1},
      {1, to.min_subnormal_exponent - 2},
      {1, 0},
  };
  const int span = top - to.min_subnormal_exponent + 8;
  const int power = to.min_subnormal_exponent - 4 +
                    static_cast<int>(below(static_cast<std::uint64_t>(span), next));
  edges.push_back({1, power});
  edges.push_back({1, power});
  const int ulps = static_cast<int>(below(5, next)) - 2;
  return with_random_sign(from, moved(from, nearest_magnitude(from, one_of(edges, next)), ulps),
                          next);
}

enum class step_point : std::uint8_t { midpoint, lower_end };

/// A value beside two neighbouring magnitudes of the destination, among them max and one beyond.
std::uint64_t draw_on_step(const oracle::format& from, const oracle::format& to, step_point where,
                           int ulps, const word_source& next) {
  const std::uint64_t unit = std::uint64_t{1} << to.unused_low_bits;
  std::uint64_t number = below(to.max_finite / unit + 1, next);
  if (next() % 8 == 0) number %= 4;                                 // the smallest subnormals
  if (next() % 8 == 0) number = to.max_finite / unit - number % 4;  // the largest values
  const oracle::dyadic lower = oracle::decode_magnitude(to, number * unit);
  const oracle::dyadic upper = number * unit == to.max_finite
                                   ? oracle::dyadic{lower.significand + 1, lower.exponent}
                                   : oracle::decode_magnitude(to, (number + 1) * unit);
  const oracle::dyadic target =
      where == step_point::midpoint ? oracle::midpoint(lower, upper) : lower;
  return with_random_sign(from, moved(from, nearest_magnitude(from, target), ulps), next);
}

/// How far a code is from the simplest one; every candidate of simpler_codes() has less.
struct complexity {
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

code_fields split(const oracle::format& f, std::uint64_t code) {
  const std::uint64_t compact = code >> f.unused_low_bits;
  return {code & ~magnitude_mask(f), (compact >> f.mantissa_bits) & low_mask(f.exponent_bits),
          compact & low_mask(f.mantissa_bits)};
}

std::uint64_t join(const oracle::format& f, const code_fields& parts) {
  return parts.other |
         (((parts.exponent << f.mantissa_bits) | parts.mantissa) << f.unused_low_bits);
}

complexity complexity_of(const oracle::format& f, std::uint64_t code) {
  const code_fields parts = split(f, code);
  return {std::popcount(parts.mantissa), std::abs(static_cast<int>(parts.exponent) - f.bias),
          std::popcount(parts.other)};
}

}  // namespace

std::uint64_t draw_code(code_family family, format_id from, format_id to, const word_source& next) {
  const oracle::format& source = oracle_of(from);
  const oracle::format& target = oracle_of(to);
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

random_bits draw_random_bits(format_id from, format_id to, std::uint64_t code,
                             const word_source& next) {
  const int k = 1 + static_cast<int>(below(32, next));
  const std::uint64_t limit = std::uint64_t{1} << k;
  std::uint64_t r = next() % limit;
  const std::uint64_t kind = below(4, next);
  if (kind == 0) r = next() % 2 == 0 ? 0 : limit - 1;
  const oracle::exact_value x = oracle::decode(oracle_of(from), code);
  if (kind == 1 && x.kind == oracle::value_kind::finite) {
    // The least R that goes away from zero, and the one below.
    const std::uint64_t needed = limit - scaled_fraction(locate(oracle_of(to), x), k);
    r = (needed - next() % 2) % limit;
  }
  return {static_cast<std::uint32_t>(r), k};
}

std::uint64_t draw_number(const word_source& next) {
  const std::uint64_t small = next() % 8;
  switch (below(4, next)) {
    case 0: return small;
    case 1: return (std::uint64_t{1} << 32) - 4 + small;
    case 2: return std::uint64_t{0} - small;
    default: return next();
  }
}

std::vector<std::uint64_t> simpler_codes(format_id from, std::uint64_t code) {
  const oracle::format& f = oracle_of(from);
  if (from != format_id::e8m0 && (code & magnitude_mask(f)) == 0) {  // 1.0 is no simpler than 0
    return code == 0 ? std::vector<std::uint64_t>{} : std::vector<std::uint64_t>{0};
  }
  const code_fields parts = split(f, code);
  const auto bias = static_cast<std::uint64_t>(f.bias);
  std::vector<code_fields> candidates{
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
    const std::uint64_t bit = std::uint64_t{1} << i;
    candidates.push_back({parts.other, parts.exponent, parts.mantissa & bit});
  }
  for (int i = f.mantissa_bits; i-- > 0;) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    candidates.push_back({parts.other, parts.exponent, parts.mantissa & ~bit});
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

case_space whole_space() {
  case_space space{all_formats(), all_formats(), {}};
  for (int i = 0; i < enum_count<rounding>; ++i) space.modes.push_back(static_cast<rounding>(i));
  return space;
}

namespace {

/// A generator from a draw of words and a list of simpler values.
template <class T, class Draw, class Simpler>
rc::Gen<T> generator(Draw draw, Simpler simpler) {
  return [draw = std::move(draw), simpler = std::move(simpler)](const rc::Random& random, int) {
    rc::Random state = random;
    T value = draw([&state] { return state.next(); });
    return rc::shrinkable::shrinkRecur(std::move(value), [simpler](const T& from) {
      return rc::seq::fromContainer(simpler(from));
    });
  };
}

code_family any_family(const word_source& next) {
  return static_cast<code_family>(below(code_family_count, next));
}

template <class Enum>
Enum any_enumerator(int count, const word_source& next) {
  return static_cast<Enum>(below(static_cast<std::uint64_t>(count), next));
}

cast_rule draw_rule(const std::vector<rounding>& modes, const word_source& next) {
  return {one_of(modes, next), any_enumerator<overflow>(enum_count<overflow>, next),
          any_enumerator<nan_policy>(enum_count<nan_policy>, next)};
}

conversion_case draw_case(const case_space& space, const word_source& next) {
  conversion_case c;
  c.from = one_of(space.from, next);
  c.to = one_of(space.to, next);
  c.input = draw_code(any_family(next), c.from, c.to, next);
  c.rule = draw_rule(space.modes, next);
  if (c.rule.rounding == rounding::stochastic) {
    c.random = draw_random_bits(c.from, c.to, c.input, next);
  }
  return c;
}

/// Simpler inputs; then plainer policies. Formats and mode say what fails and stay.
std::vector<conversion_case> simpler_cases(const conversion_case& c) {
  std::vector<conversion_case> simpler;
  const auto add = [&](auto change) {
    conversion_case other = c;
    change(other);
    simpler.push_back(std::move(other));
  };
  for (const std::uint64_t code : simpler_codes(c.from, c.input)) {
    add([&](conversion_case& other) { other.input = code; });
  }
  if (c.rule.overflow != overflow::ieee) {
    add([](conversion_case& other) { other.rule.overflow = overflow::ieee; });
  }
  if (c.rule.nan != nan_policy::canonical) {
    add([](conversion_case& other) { other.rule.nan = nan_policy::canonical; });
  }
  if (c.random.value != 0) {
    add([](conversion_case& other) { other.random.value &= other.random.value - 1; });
  }
  return simpler;
}

}  // namespace

rc::Gen<conversion_case> cases(const case_space& space) {
  return generator<conversion_case>(
      [space](const word_source& next) { return draw_case(space, next); }, simpler_cases);
}

rc::Gen<std::uint64_t> codes(format_id from, format_id to) {
  return generator<std::uint64_t>(
      [=](const word_source& next) { return draw_code(any_family(next), from, to, next); },
      [=](std::uint64_t code) { return simpler_codes(from, code); });
}

}  // namespace samebits::support
