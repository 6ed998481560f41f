// Decoding from the definition of a format: field values, then significand times power of two.
#include "oracle/exact.hpp"

#include <bit>
#include <stdexcept>
#include <string>

namespace samebits::oracle {
namespace {

constexpr std::uint64_t power_of_two(int n) { return std::uint64_t{1} << n; }

struct fields {
  bool negative;
  std::uint64_t exponent;
  std::uint64_t mantissa;
};

fields split(const format& f, std::uint64_t code) {
  const std::uint64_t without_padding = code / power_of_two(f.unused_low_bits);
  const std::uint64_t above_mantissa = without_padding / power_of_two(f.mantissa_bits);
  const std::uint64_t above_exponent = above_mantissa / power_of_two(f.exponent_bits);
  return {f.sign_bits == 1 && above_exponent % 2 == 1,
          above_mantissa % power_of_two(f.exponent_bits),
          without_padding % power_of_two(f.mantissa_bits)};
}

value_kind kind_of(const format& f, const fields& parts) {
  const bool exponent_ones = parts.exponent == power_of_two(f.exponent_bits) - 1;
  const bool mantissa_ones = parts.mantissa == power_of_two(f.mantissa_bits) - 1;
  const bool magnitude_zero = parts.exponent == 0 && parts.mantissa == 0;
  switch (f.nan) {
    case nan_codes::ieee:
      if (!exponent_ones) return value_kind::finite;
      return parts.mantissa == 0 ? value_kind::infinite : value_kind::nan;
    case nan_codes::magnitude_ones:
      return exponent_ones && mantissa_ones ? value_kind::nan : value_kind::finite;
    case nan_codes::sign_only:
      return parts.negative && magnitude_zero ? value_kind::nan : value_kind::finite;
    case nan_codes::all_ones: return exponent_ones ? value_kind::nan : value_kind::finite;
    case nan_codes::none: return value_kind::finite;
  }
  throw std::invalid_argument("oracle: format.nan is not a nan_codes value");
}

dyadic magnitude_of(const format& f, const fields& parts) {
  if (parts.exponent == 0 && f.zero != zeros::none) {
    return {parts.mantissa, 1 - f.bias - f.mantissa_bits};
  }
  return {power_of_two(f.mantissa_bits) + parts.mantissa,
          static_cast<int>(parts.exponent) - f.bias - f.mantissa_bits};
}

}  // namespace

std::strong_ordering compare(const dyadic& a, const dyadic& b) {
  if (a.significand == 0 || b.significand == 0) return a.significand <=> b.significand;
  const int a_bits = static_cast<int>(std::bit_width(a.significand));
  const int b_bits = static_cast<int>(std::bit_width(b.significand));
  if (a_bits + a.exponent != b_bits + b.exponent) {
    return a_bits + a.exponent <=> b_bits + b.exponent;
  }
  // Same binade: writing both with equally many bits gives them the same exponent, and the wider of
  // the two already fits the word.
  const int bits = a_bits > b_bits ? a_bits : b_bits;
  return (a.significand << (bits - a_bits)) <=> (b.significand << (bits - b_bits));
}

dyadic midpoint(const dyadic& a, const dyadic& b) {
  const int minimum = a.exponent < b.exponent ? a.exponent : b.exponent;
  if (a.exponent - minimum > 1 || b.exponent - minimum > 1 || a.significand >= power_of_two(60) ||
      b.significand >= power_of_two(60)) {
    throw std::invalid_argument("oracle::midpoint: a and b are not neighbours of one grid");
  }
  const std::uint64_t sum = a.significand * power_of_two(a.exponent - minimum) +
                            b.significand * power_of_two(b.exponent - minimum);
  return {sum, minimum - 1};
}

exact_value exact_from(const cpp_rational& x, bool negative_zero) {
  exact_value result;
  result.negative = x == 0 ? negative_zero : x < 0;
  result.numerator = abs(numerator(x));
  result.denominator = denominator(x);
  return result;
}

cpp_rational rational_of(const exact_value& x) {
  if (x.kind != value_kind::finite) {
    throw std::invalid_argument("oracle::rational_of: x is not finite");
  }
  cpp_int up = x.numerator;
  cpp_int down = x.denominator;
  if (x.exponent >= 0) {
    up <<= x.exponent;
  } else {
    down <<= -x.exponent;
  }
  if (x.negative) up = -up;
  return {up, down};
}

std::uint64_t meaningful_bits(const format& f, std::uint64_t code) {
  if (f.storage_bits < 64 && code >= power_of_two(f.storage_bits)) {
    throw std::invalid_argument("oracle: code does not fit the " + std::to_string(f.storage_bits) +
                                "-bit storage word of " + std::string(f.name));
  }
  const std::uint64_t in_code = f.code_bits < 64 ? code % power_of_two(f.code_bits) : code;
  return in_code - in_code % power_of_two(f.unused_low_bits);
}

dyadic decode_magnitude(const format& f, std::uint64_t magnitude_code) {
  return magnitude_of(f, split(f, magnitude_code));
}

exact_value decode(const format& f, std::uint64_t code) {
  const fields parts = split(f, meaningful_bits(f, code));
  exact_value result;
  result.kind = kind_of(f, parts);
  result.negative = parts.negative;
  if (result.kind == value_kind::nan && f.nan == nan_codes::sign_only) result.negative = false;
  if (result.kind == value_kind::finite) {
    const dyadic magnitude = magnitude_of(f, parts);
    result.numerator = magnitude.significand;
    result.exponent = magnitude.exponent;
  }
  return result;
}

}  // namespace samebits::oracle
