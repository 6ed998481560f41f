// Scale rules from integer quotients and remainders.
#include "oracle/scale_exact.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace samebits::oracle {
namespace {

/// significand * 2^exponent with 2^23 <= significand < 2^24.
struct number {
  std::uint64_t significand;
  int exponent;
};

constexpr number one{std::uint64_t{1} << 23, -23};
constexpr std::uint32_t infinity = 0x7F800000;
constexpr std::uint32_t min_normal = 0x00800000;  // 2^-126
constexpr std::uint32_t two_to_126 = 0x7E800000;

number normalised(std::uint64_t significand, int exponent) {
  const int missing = 24 - static_cast<int>(std::bit_width(significand));
  return {significand << missing, exponent - missing};
}

/// Of a positive finite code.
number decode_positive(std::uint32_t code) {
  const std::uint64_t fraction = code % 0x00800000u;
  const int field = static_cast<int>(code / 0x00800000u);
  if (field == 0) return normalised(fraction, -149);
  return {fraction + 0x00800000u, field - 150};
}

/// The code nearest to q * 2^exponent, or with a tail to a little more; ties to even. q has 25 bits
/// or more.
std::uint32_t nearest(std::uint64_t q, int exponent, bool tail) {
  const int bits = static_cast<int>(std::bit_width(q));
  const int binade = exponent + bits - 1;
  const int spacing = binade < -126 ? -149 : binade - 23;
  const int dropped = spacing - exponent;  // >= 1
  if (dropped > bits) return 0;            // below half of 2^-149
  const std::uint64_t unit = std::uint64_t{1} << dropped;
  const std::uint64_t rest = q % unit;
  std::uint64_t kept = q / unit;
  const bool above_half = 2 * rest > unit || (2 * rest == unit && tail);
  const bool tie = 2 * rest == unit && !tail;
  if (above_half || (tie && kept % 2 == 1)) ++kept;

  // kept counts units of 2^spacing; adding it to the exponent field's base lets a carry through.
  const std::uint64_t steps = static_cast<std::uint64_t>(spacing + 149);
  const std::uint64_t code = steps * 0x00800000u + kept;
  return code >= infinity ? infinity : static_cast<std::uint32_t>(code);
}

/// The code nearest to a / b, ties to even.
std::uint32_t nearest_quotient(const number& a, const number& b) {
  // 25 or 26 bits of quotient; what remains decides only whether the tail is 0.
  const std::uint64_t dividend = a.significand << 25;
  return nearest(dividend / b.significand, a.exponent - b.exponent - 25,
                 dividend % b.significand != 0);
}

/// The code nearest to a * b, ties to even.
std::uint32_t nearest_product(const number& a, const number& b) {
  return nearest(a.significand * b.significand, a.exponent + b.exponent, false);
}

number largest_of(const format& to) {
  if (to.name == "e4m3") return {std::uint64_t{7} << 21, 6 - 21};   // 7 * 2^6
  if (to.name == "e5m2") return {std::uint64_t{7} << 21, 13 - 21};  // 7 * 2^13
  throw std::invalid_argument("oracle: to is not e4m3 or e5m2");
}

/// s = max(RN(a / M), 2^-126).
std::uint32_t raised_quotient(const number& a, const number& m) {
  const std::uint32_t code = nearest_quotient(a, m);
  return code < min_normal ? min_normal : code;
}

/// s = max(RN(a * RN(1 / M)), 2^-126).
std::uint32_t raised_product(const number& a, const number& m) {
  const std::uint32_t code = nearest_product(a, decode_positive(nearest_quotient(one, m)));
  return code < min_normal ? min_normal : code;
}

/// The code of 1 / s.
std::uint32_t reciprocal(std::uint32_t s) { return nearest_quotient(one, decode_positive(s)); }

/// S, of which te_pow2 keeps the exponent.
std::uint32_t te_factor(scale_rule rule, const number& a, const number& m) {
  const std::uint32_t quotient = nearest_quotient(m, a);
  const std::uint32_t code = quotient == infinity ? 0x7F7FFFFFu : quotient;
  return rule == scale_rule::te ? code : code / 0x00800000u * 0x00800000u;
}

/// The least power of two that is no less than RN(a / M), within 2^-126 .. 2^127.
tile_scale power_of_two_scale(const number& a, const number& m) {
  const std::uint32_t t = nearest_quotient(a, m);
  int k = -126;
  if (t > min_normal) {
    const number value = decode_positive(t);
    k = value.exponent + 23 + (value.significand == one.significand ? 0 : 1);
  }
  const auto positive = static_cast<std::uint32_t>(k + 127) * 0x00800000u;
  const auto negative = static_cast<std::uint32_t>(127 - k) * 0x00800000u;
  return {positive, k == 127 ? 0x00400000u : negative};
}

/// The exponent of an mx rule's scale, before it is clamped.
int mx_exponent(scale_rule rule, const format& to, const number& a, const number& m) {
  const auto floor_of = [](const number& x) { return x.exponent + 23; };
  const auto above = [&](const number& x) {
    return floor_of(x) + (x.significand == one.significand ? 0 : 1);
  };
  if (rule == scale_rule::mx_rceil) {
    const std::uint32_t t = nearest_quotient(a, m);
    return t == 0 ? -127 : above(decode_positive(t));
  }
  if (rule == scale_rule::mx_ceil) return above(a) - floor_of(m);
  if (rule == scale_rule::mx_floor) return floor_of(a) - floor_of(m);
  const std::uint64_t half = to.name == "e4m3" ? 1u << 19 : 1u << 20;  // of the codes' last place
  const bool carries = a.significand + half >= std::uint64_t{1} << 24;
  return floor_of(a) + (carries ? 1 : 0) - floor_of(m);
}

tile_scale mx_scale(int exponent) {
  const int k = std::clamp(exponent, -127, 127);
  const auto code_of = [](int power) {
    return power == -127 ? 0x00400000u : static_cast<std::uint32_t>(power + 127) * 0x00800000u;
  };
  return {code_of(k), code_of(-k)};
}

}  // namespace

std::uint32_t integer_quotient(std::uint32_t a, std::uint32_t b) {
  return nearest_quotient(decode_positive(a), decode_positive(b));
}

tile_scale scale_exact(scale_rule rule, const format& to, std::uint32_t amax) {
  if (amax == 0 || amax >= infinity) {
    throw std::invalid_argument("oracle::scale_exact: amax is not positive and finite");
  }
  const number m = largest_of(to);
  const number a = decode_positive(amax);
  switch (rule) {
    case scale_rule::te:
    case scale_rule::te_pow2: {
      const std::uint32_t code = te_factor(rule, a, m);
      return {reciprocal(code), code};
    }
    case scale_rule::div: {
      const std::uint32_t s = raised_quotient(a, m);
      return {s, s};
    }
    case scale_rule::rcp: {
      const std::uint32_t s = raised_quotient(a, m);
      return {s, reciprocal(s)};
    }
    case scale_rule::dg_cuda: {
      const std::uint32_t s = raised_product(a, m);
      return {s, reciprocal(s)};
    }
    case scale_rule::dg_tile:
      return {raised_quotient(a, m), std::min(nearest_quotient(m, a), two_to_126)};
    case scale_rule::sgl_v2:
      return {raised_product(a, m), std::min(nearest_quotient(m, a), two_to_126)};
    case scale_rule::pow2: return power_of_two_scale(a, m);
    case scale_rule::mx_floor:
    case scale_rule::mx_ceil:
    case scale_rule::mx_even:
    case scale_rule::mx_rceil: return mx_scale(mx_exponent(rule, to, a, m));
  }
  throw std::invalid_argument("oracle: rule is not a scale_rule value");
}

}  // namespace samebits::oracle
