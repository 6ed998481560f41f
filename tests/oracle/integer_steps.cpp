// Binary32 quotients and products from integers and remainders.
#include "oracle/integer_steps.hpp"

#include <bit>

namespace samebits::oracle {
namespace {

/// significand * 2^exponent with 2^23 <= significand < 2^24.
struct number {
  std::uint64_t significand;
  int exponent;
};

constexpr std::uint32_t infinity = 0x7F800000;

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

}  // namespace

std::uint32_t integer_quotient(std::uint32_t a, std::uint32_t b) {
  const number x = decode_positive(a);
  const number y = decode_positive(b);
  // 25 or 26 bits of quotient; what remains decides only whether the tail is 0.
  const std::uint64_t dividend = x.significand << 25;
  return nearest(dividend / y.significand, x.exponent - y.exponent - 25,
                 dividend % y.significand != 0);
}

std::uint32_t integer_product(std::uint32_t a, std::uint32_t b) {
  const number x = decode_positive(a);
  const number y = decode_positive(b);
  return nearest(x.significand * y.significand, x.exponent + y.exponent, false);
}

}  // namespace samebits::oracle
