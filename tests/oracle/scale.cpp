// Scales from exact quotients, one function per sentence of contract §7.
#include "oracle/scale.hpp"

#include <algorithm>
#include <stdexcept>

#include "oracle/convert.hpp"
#include "oracle/elementary.hpp"
#include "oracle/exact.hpp"

namespace samebits::oracle {
namespace {

constexpr std::uint32_t one = 0x3F800000;
constexpr std::uint32_t infinity = 0x7F800000;
constexpr std::uint32_t canonical_nan = 0x7FFFFFFF;
constexpr std::uint32_t min_normal = 0x00800000;      // 2^-126
constexpr std::uint32_t largest_raised = 0x7E800000;  // 2^126
constexpr std::uint32_t magnitude_end = 0x80000000;
constexpr std::uint32_t exponent_unit = 0x00800000;

std::uint32_t magnitude(std::uint32_t code) { return code % magnitude_end; }
bool is_nan(std::uint32_t code) { return magnitude(code) > infinity; }

/// M, the largest finite value of the destination, in binary32.
std::uint32_t largest_of(const format& to) {
  if (to.name == "e4m3") return 0x43E00000;  // 448 = 1.75 * 2^8
  if (to.name == "e5m2") return 0x47600000;  // 57344 = 1.75 * 2^15
  throw std::invalid_argument("oracle: to is not e4m3 or e5m2");
}

std::uint32_t infinity_to(std::uint32_t instead, std::uint32_t code) {
  return code == infinity ? instead : code;
}

/// max(s, 2^-126); a NaN stays.
std::uint32_t raised(std::uint32_t s) { return is_nan(s) ? s : std::max(s, min_normal); }

/// max over the tile of the codes without sign; whether any element took part.
struct tile_amax {
  std::uint32_t value = 0;
  bool nothing_left = true;
};

tile_amax amax_of(std::span<const std::uint32_t> elements, nonfinite policy) {
  tile_amax a;
  for (const std::uint32_t element : elements) {
    if (is_nan(element) && policy != nonfinite::propagate) continue;
    if (magnitude(element) == infinity && policy == nonfinite::skip_nonfinite) continue;
    a.value = std::max(a.value, is_nan(element) ? canonical_nan : magnitude(element));
    a.nothing_left = false;
  }
  return a;
}

tile_scale te_scale(std::uint32_t m, std::uint32_t a, std::uint32_t instead) {
  const std::uint32_t big_s = infinity_to(instead, divide32(m, a));
  return {divide32(one, big_s), big_s};
}

/// S without its fraction: the power of two at or below it.
tile_scale te_pow2_scale(std::uint32_t m, std::uint32_t a, std::uint32_t instead) {
  const std::uint32_t full = te_scale(m, a, instead).factor;
  const std::uint32_t big_s = is_nan(full) ? full : full - full % exponent_unit;
  return {divide32(one, big_s), big_s};
}

/// s = a * (1 / M), rounded twice.
std::uint32_t by_reciprocal(std::uint32_t m, std::uint32_t a) {
  return multiply32(a, divide32(one, m));
}

/// r = M / a, but no more than the reciprocal of the least s.
std::uint32_t capped_inverse(std::uint32_t m, std::uint32_t a) {
  const std::uint32_t r = divide32(m, a);
  return is_nan(r) ? r : std::min(r, largest_raised);
}

tile_scale rcp_scale(std::uint32_t m, std::uint32_t a) {
  const std::uint32_t s = raised(divide32(a, m));
  return {s, divide32(one, s)};
}

tile_scale div_scale(std::uint32_t m, std::uint32_t a) {
  const std::uint32_t s = raised(divide32(a, m));
  return {s, s};
}

/// 2^(e - 127) as a code, for e in 0..254; 2^-127 is subnormal.
std::uint32_t power_of_two_code(std::uint32_t e) {
  return e == 0 ? exponent_unit / 2 : e * exponent_unit;
}

tile_scale pow2_scale(std::uint32_t m, std::uint32_t a) {
  const std::uint32_t t = divide32(a, m);
  const std::uint32_t up = t % exponent_unit != 0 ? 1 : 0;
  const std::uint32_t e = std::clamp(t / exponent_unit + up, 1u, 254u);
  return {power_of_two_code(e), power_of_two_code(254 - e)};
}

cpp_rational power(int k) {
  const cpp_int shifted = cpp_int(1) << (k < 0 ? -k : k);
  return k < 0 ? cpp_rational(1, shifted) : cpp_rational(shifted);
}

/// The rational of a positive finite code.
cpp_rational value_of(std::uint32_t code) {
  return rational_of(decode(format_named("fp32"), code));
}

/// Within 1 of the exponent of a > 0.
int about_exponent(const cpp_rational& a) {
  return static_cast<int>(msb(numerator(a))) - static_cast<int>(msb(denominator(a)));
}

/// The largest k with 2^k * (1 - part) <= a; part is below a half.
int exponent_below(const cpp_rational& a, const cpp_rational& part) {
  int k = about_exponent(a) + 2;
  while (power(k) * (1 - part) > a) --k;
  return k;
}

/// The least k with 2^k >= a.
int exponent_above(const cpp_rational& a) {
  int k = about_exponent(a) - 1;
  while (power(k) < a) ++k;
  return k;
}

/// The exponent of an mx rule's scale before it is clamped; a is finite.
int mx_exponent(scale_rule rule, const format& to, std::uint32_t m, std::uint32_t a) {
  if (rule == scale_rule::mx_rceil) {
    const std::uint32_t t = divide32(a, m);
    return t == 0 ? -127 : exponent_above(value_of(t));
  }
  const int emax = exponent_below(value_of(m), 0);
  if (rule == scale_rule::mx_floor) return exponent_below(value_of(a), 0) - emax;
  if (rule == scale_rule::mx_ceil) return exponent_above(value_of(a)) - emax;
  // Rounded to the codes' precision, 2^k is reached from the midpoint below it on: the number with
  // all mantissa bits set is odd, so that the tie goes to 2^k.
  const int mantissa = to.name == "e4m3" ? 3 : 2;
  return exponent_below(value_of(a), power(-mantissa - 2)) - emax;
}

tile_scale mx_scale(scale_rule rule, const format& to, std::uint32_t m, std::uint32_t a) {
  const int k = a >= infinity ? 127 : std::clamp(mx_exponent(rule, to, m, a), -127, 127);
  return {power_of_two_code(static_cast<std::uint32_t>(k + 127)),
          power_of_two_code(static_cast<std::uint32_t>(127 - k))};
}

bool is_mx(scale_rule rule) {
  return rule == scale_rule::mx_floor || rule == scale_rule::mx_ceil ||
         rule == scale_rule::mx_even || rule == scale_rule::mx_rceil;
}

/// max(a, eps), min(a, upper bound); a NaN passes.
std::uint32_t bounded(const scale_settings& settings, std::uint32_t a) {
  if (is_nan(a)) return a;
  const std::uint32_t raised_to_eps = std::max(a, settings.eps);
  return settings.upper_bound ? std::min(raised_to_eps, *settings.upper_bound) : raised_to_eps;
}

}  // namespace

tile_scale scale_of_amax(scale_rule rule, const format& to, std::uint32_t a,
                         std::uint32_t infinite_factor) {
  if (a >= magnitude_end) throw std::invalid_argument("oracle: a has a sign, expected a magnitude");
  const std::uint32_t m = largest_of(to);
  if (a == 0) return {};
  switch (rule) {
    case scale_rule::te: return te_scale(m, a, infinite_factor);
    case scale_rule::div: return div_scale(m, a);
    case scale_rule::rcp: return rcp_scale(m, a);
    case scale_rule::pow2: return pow2_scale(m, a);
    case scale_rule::dg_cuda: {
      const std::uint32_t s = raised(by_reciprocal(m, a));
      return {s, divide32(one, s)};
    }
    case scale_rule::dg_tile: return {raised(divide32(a, m)), capped_inverse(m, a)};
    case scale_rule::sgl_v2: return {raised(by_reciprocal(m, a)), capped_inverse(m, a)};
    case scale_rule::te_pow2: return te_pow2_scale(m, a, infinite_factor);
    case scale_rule::mx_floor:
    case scale_rule::mx_ceil:
    case scale_rule::mx_even:
    case scale_rule::mx_rceil: return mx_scale(rule, to, m, a);
  }
  throw std::invalid_argument("oracle: settings.rule is not a scale_settings value");
}

tile_scale scale_of_tile(const scale_settings& settings, const format& to,
                         std::span<const std::uint32_t> elements) {
  require_valid(settings);
  const tile_amax amax = amax_of(elements, settings.nonfinite);
  if (amax.nothing_left) return {};
  if (settings.nonfinite == nonfinite::te && amax.value == infinity) return {};
  const std::uint32_t a = bounded(settings, amax.value);
  const bool poisoned = settings.nonfinite == nonfinite::propagate && a >= infinity;
  if (poisoned && is_mx(settings.rule)) return {canonical_nan, canonical_nan};
  return scale_of_amax(settings.rule, to, a, settings.infinite_factor);
}

bool scales_are_powers_of_two(scale_rule rule) {
  switch (rule) {
    case scale_rule::pow2:
    case scale_rule::te_pow2:
    case scale_rule::mx_floor:
    case scale_rule::mx_ceil:
    case scale_rule::mx_even:
    case scale_rule::mx_rceil: return true;
    case scale_rule::te:
    case scale_rule::div:
    case scale_rule::rcp:
    case scale_rule::dg_cuda:
    case scale_rule::dg_tile:
    case scale_rule::sgl_v2: return false;
  }
  throw std::invalid_argument("oracle: no such scale rule");
}

std::uint8_t e8m0_of_tile(const scale_settings& settings, const format& to,
                          std::span<const std::uint32_t> elements) {
  if (!scales_are_powers_of_two(settings.rule)) {
    throw std::invalid_argument("oracle: settings.rule has scales that are no powers of two");
  }
  const tile_scale scale = scale_of_tile(settings, to, elements);
  const tile_amax amax = amax_of(elements, settings.nonfinite);
  if (!amax.nothing_left && bounded(settings, amax.value) == 0) return 0x00;
  return static_cast<std::uint8_t>(
      convert(format_named("fp32"), format_named("e8m0"), scale.s, {}));
}

tile_scale scale_of_inverse(std::uint32_t inverse_scale) {
  return {divide32(one, inverse_scale), inverse_scale};
}

std::uint32_t scaled(scale_rule rule, const tile_scale& scale, std::uint32_t x) {
  return rule == scale_rule::div ? divide32(x, scale.factor) : multiply32(x, scale.factor);
}

void require_valid(const scale_settings& settings) {
  if (settings.rule > scale_rule::mx_rceil) {
    throw std::invalid_argument("oracle: settings.rule is not a scale_settings value");
  }
  if (settings.nonfinite > nonfinite::skip_nan) {
    throw std::invalid_argument("oracle: settings.nonfinite is not a nonfinite value");
  }
  if (settings.eps >= infinity) {
    throw std::invalid_argument("oracle: settings.eps is not a finite number >= 0");
  }
  if (settings.infinite_factor == 0 || settings.infinite_factor >= infinity) {
    throw std::invalid_argument("oracle: settings.infinite_factor is not a finite number > 0");
  }
  if (settings.upper_bound && *settings.upper_bound > infinity) {
    throw std::invalid_argument("oracle: settings.upper_bound is not a number >= 0");
  }
}

}  // namespace samebits::oracle
