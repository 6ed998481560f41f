// Scales from exact quotients, one function per sentence of contract §7.
#include "oracle/scale.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "oracle/convert.hpp"
#include "oracle/elementary.hpp"
#include "oracle/two_levels.hpp"

namespace samebits::oracle {
namespace {

constexpr std::uint32_t one = 0x3F800000;
constexpr std::uint32_t infinity = 0x7F800000;
constexpr std::uint32_t canonical_nan = 0x7FFFFFFF;
constexpr std::uint32_t min_normal = 0x00800000;      // 2^-126
constexpr std::uint32_t largest_raised = 0x7E800000;  // 2^126
constexpr std::uint32_t exponent_unit = 0x00800000;

std::uint32_t magnitude(std::uint32_t code) { return code % 0x80000000u; }
bool is_nan(std::uint32_t code) { return magnitude(code) > infinity; }

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

/// 2^(e - 127) as a code, for e in 0..254; 2^-127 is subnormal.
std::uint32_t power_of_two_code(std::uint32_t e) {
  return e == 0 ? exponent_unit / 2 : e * exponent_unit;
}

/// A positive finite number as 2^exponent * (significand / 2^23), significand in 2^23 .. 2^24 - 1.
struct binade {
  int exponent;
  std::uint32_t significand;
};

binade binade_of(std::uint32_t code) {
  const std::uint32_t fraction = code % exponent_unit;
  if (code >= exponent_unit) {
    return {static_cast<int>(code / exponent_unit) - 127, fraction + exponent_unit};
  }
  const int missing = 24 - static_cast<int>(std::bit_width(fraction));
  return {-126 - missing, fraction << missing};
}

/// The least k with 2^k no less than the number.
int exponent_above(std::uint32_t code) {
  const binade b = binade_of(code);
  return b.exponent + (b.significand == exponent_unit ? 0 : 1);
}

/// The scale rules of one amax a > 0.
struct rules {
  const binary32_steps& steps;
  const format& to;
  std::uint32_t m;
  std::uint32_t a;
  std::uint32_t infinite_factor;

  [[nodiscard]] std::uint32_t reciprocal(std::uint32_t s) const { return steps.quotient(one, s); }
  [[nodiscard]] tile_scale of_factor(std::uint32_t big_s) const {
    return {reciprocal(big_s), big_s};
  }
  [[nodiscard]] tile_scale of_scale(std::uint32_t s) const { return {s, reciprocal(s)}; }
  [[nodiscard]] std::uint32_t quotient() const { return steps.quotient(a, m); }
  /// s = a / M.
  [[nodiscard]] std::uint32_t divided() const { return raised(quotient()); }
  /// s = a * (1 / M), rounded twice.
  [[nodiscard]] std::uint32_t multiplied() const { return raised(steps.product(a, reciprocal(m))); }
  /// r = M / a, but no more than the reciprocal of the least s.
  [[nodiscard]] std::uint32_t capped_inverse() const {
    const std::uint32_t r = steps.quotient(m, a);
    return is_nan(r) ? r : std::min(r, largest_raised);
  }
  /// S = M / a.
  [[nodiscard]] std::uint32_t factor() const {
    return infinity_to(infinite_factor, steps.quotient(m, a));
  }
  /// S without its fraction: the power of two at or below it.
  [[nodiscard]] std::uint32_t power_of_two_factor() const {
    const std::uint32_t full = factor();
    return is_nan(full) ? full : full - full % exponent_unit;
  }
  [[nodiscard]] tile_scale pow2() const {
    const std::uint32_t t = quotient();
    const std::uint32_t up = t % exponent_unit != 0 ? 1 : 0;
    const std::uint32_t e = std::clamp(t / exponent_unit + up, 1u, 254u);
    return {power_of_two_code(e), power_of_two_code(254 - e)};
  }
  /// s = 2^k; k is an mx rule's exponent of a finite a.
  template <class Exponent>
  [[nodiscard]] tile_scale mx(const Exponent& exponent) const {
    const int k = a >= infinity ? 127 : std::clamp(exponent(), -127, 127);
    return {power_of_two_code(static_cast<std::uint32_t>(k + 127)),
            power_of_two_code(static_cast<std::uint32_t>(127 - k))};
  }
  /// The exponent of a, rounded to the codes' precision. Half a last place below a power of two, it is
  /// reached: the number with all mantissa bits set is odd, so that the tie goes to the power.
  [[nodiscard]] int rounded_exponent() const {
    const binade b = binade_of(a);
    const std::uint32_t half = exponent_unit >> (to.mantissa_bits + 1);
    return b.exponent + (b.significand + half >= 2 * exponent_unit ? 1 : 0);
  }

  [[nodiscard]] tile_scale scale(scale_rule rule) const {
    const int emax = binade_of(m).exponent;
    switch (rule) {
      case scale_rule::te: return of_factor(factor());
      case scale_rule::te_pow2: return of_factor(power_of_two_factor());
      case scale_rule::div: return {divided(), divided()};
      case scale_rule::rcp: return of_scale(divided());
      case scale_rule::dg_cuda: return of_scale(multiplied());
      case scale_rule::dg_tile: return {divided(), capped_inverse()};
      case scale_rule::sgl_v2: return {multiplied(), capped_inverse()};
      case scale_rule::pow2: return pow2();
      case scale_rule::mx_floor: return mx([&] { return binade_of(a).exponent - emax; });
      case scale_rule::mx_ceil: return mx([&] { return exponent_above(a) - emax; });
      case scale_rule::mx_even: return mx([&] { return rounded_exponent() - emax; });
      case scale_rule::mx_rceil:
        return mx([&] { return quotient() == 0 ? -127 : exponent_above(quotient()); });
      default: break;  // two levels
    }
    throw std::invalid_argument("oracle: settings.rule is not a scale_settings value");
  }
};

/// Whether the rule is an mx rule.
bool has_exponents(scale_rule rule) {
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

const binary32_steps by_rationals = {divide32, multiply32};

std::uint32_t largest_of(const format& to) {
  if (to.name == "e4m3") return 0x43E00000;  // 448 = 1.75 * 2^8
  if (to.name == "e5m2") return 0x47600000;  // 57344 = 1.75 * 2^15
  if (to.name == "e2m1") return 0x40C00000;  // 6 = 1.5 * 2^2
  if (to.name == "e2m3") return 0x40F00000;  // 7.5 = 1.875 * 2^2
  if (to.name == "e3m2") return 0x41E00000;  // 28 = 1.75 * 2^4
  throw std::invalid_argument("oracle: to is no format of quantized codes");
}

tile_scale scale_of_amax(scale_rule rule, const format& to, std::uint32_t a,
                         std::uint32_t infinite_factor, const binary32_steps& steps) {
  if (a == 0) return {};
  return rules{steps, to, largest_of(to), a, infinite_factor}.scale(rule);
}

tile_scale scale_of_tile(const scale_settings& settings, const format& to,
                         std::span<const std::uint32_t> elements, std::size_t columns) {
  const tile_amax amax = amax_of(elements, settings.nonfinite);
  if (amax.nothing_left && !is_two_level(settings.rule)) return {};
  if (settings.nonfinite == nonfinite::te && amax.value == infinity) return {};
  const std::uint32_t a = bounded(settings, amax.value);
  if (is_two_level(settings.rule)) {
    return two_level_scale(settings, to, a, elements, columns);
  }
  const bool poisoned = settings.nonfinite == nonfinite::propagate && a >= infinity;
  if (poisoned && has_exponents(settings.rule)) return {canonical_nan, canonical_nan};
  return scale_of_amax(settings.rule, to, a, settings.infinite_factor);
}

std::uint32_t amax_left(std::span<const std::uint32_t> elements, nonfinite policy) {
  return amax_of(elements, policy).value;
}

bool scales_are_powers_of_two(scale_rule rule) {
  return rule == scale_rule::pow2 || rule == scale_rule::te_pow2 || has_exponents(rule);
}

std::uint8_t e8m0_of_tile(const scale_settings& settings, const format& to,
                          std::span<const std::uint32_t> elements) {
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

}  // namespace samebits::oracle
