// The function units by the formulas of docs/contract.md, section 11, in binary64.
//
// Shares the tables with the library and nothing else. Sums are exact: in units of the rows, every
// term is an integer below 2^43.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "numerics/hardware/function_units/tables/ex2_table.hpp"
#include "numerics/hardware/function_units/tables/lg2_table.hpp"
#include "numerics/hardware/function_units/tables/rcp_table.hpp"
#include "numerics/hardware/function_units/tables/rsqrt_table.hpp"
#include "numerics/hardware/function_units/tables/sqrt_table.hpp"

namespace samebits::numerics::hopper::oracle {

inline double value_of(std::uint32_t code) {
  return static_cast<double>(std::bit_cast<float>(code));
}
/// The code of a number that binary32 holds; results below the normal numbers are flushed.
inline std::uint32_t code_of(double value) {
  if (std::isnan(value)) return 0x7FFFFFFF;
  if (std::abs(value) < 0x1p-126) return std::signbit(value) ? 0x80000000 : 0;
  if (std::abs(value) >= 0x1p128) return value < 0 ? 0xFF800000 : 0x7F800000;
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}
/// A subnormal counts as a zero of its sign.
inline double operand_of(std::uint32_t code) {
  const double x = value_of(code);
  return std::abs(x) < 0x1p-126 ? std::copysign(0.0, x) : x;
}

/// The square of x / 2^bits in units of 2^-15, without the partial products of less weight.
inline std::uint32_t square(std::uint32_t x, int bits) {
  std::uint32_t sum = 0;
  const auto bit = [&](int i) { return (x >> (bits - i)) & 1; };
  for (int i = 1; i <= bits; ++i) {
    if (2 * i <= 15) sum += bit(i) << (15 - 2 * i);
    for (int j = i + 1; j <= bits; ++j) {
      if (i + j - 1 <= 15) sum += (bit(i) & bit(j)) << (15 - (i + j - 1));
    }
  }
  return sum;
}

/// A + B X / 2^b + D q / 2^15 at a fraction in [0, 1) of 23 bits; rows are in units of `unit`.
template <class Row>
double polynomial(const Row& row_of, int rows, double unit, double fraction) {
  const double place = fraction * rows;
  const int bits = rows == 128 ? 16 : 17;
  const double x = place - std::floor(place);
  const unit_row row = row_of(static_cast<std::uint32_t>(place));
  const double q = square(static_cast<std::uint32_t>(std::ldexp(x, bits)), bits);
  return (static_cast<double>(row.a) + row.b * std::ldexp(x, 17) + row.d * 4.0 * q) * unit;
}

inline std::uint32_t ex2(std::uint32_t code) {
  const double x = operand_of(code);
  if (std::isnan(x)) return 0x7FFFFFFF;
  if (std::abs(x) >= 256) return x < 0 ? 0 : 0x7F800000;
  double cut = std::trunc(x * 0x1p23) / 0x1p23;
  if (cut < 0 && cut != std::trunc(cut)) cut -= 0x1p-23;  // all bits of the magnitude inverted
  const double whole = std::floor(cut);
  const double ulps = std::floor(polynomial(ex2_row, 64, 0x1p-17, cut - whole));
  return code_of(std::ldexp(1 + ulps * 0x1p-23, static_cast<int>(whole)));
}

inline std::uint32_t lg2(std::uint32_t code) {
  const double x = operand_of(code);
  if (std::isnan(x) || x < 0) return 0x7FFFFFFF;
  if (x == 0) return 0xFF800000;
  if (std::isinf(x)) return 0x7F800000;
  if (x == 1) return 0;
  const int exponent = std::ilogb(x);
  const double sum = exponent + polynomial(lg2_row, 64, 0x1p-41, std::ldexp(x, -exponent) - 1);
  const double cut = std::trunc(sum * 0x1p36);
  if (cut == 0) return 0;
  const int places = 23 - std::ilogb(cut);  // to the 24th significant bit
  return code_of(std::ldexp(std::trunc(std::ldexp(cut, places)), -places - 36));
}

inline std::uint32_t rcp(std::uint32_t code) {
  const double x = operand_of(code);
  if (std::isnan(x) || std::isinf(x) || x == 0) return code_of(1 / x);
  const int exponent = std::ilogb(x);
  const double fraction = std::ldexp(std::abs(x), -exponent) - 1;
  if (fraction == 0) return code_of(1 / x);
  const double ulps = std::floor(polynomial(rcp_row, 128, 0x1p-17, fraction));
  return code_of(std::copysign(std::ldexp(0.5 + ulps * 0x1p-24, -exponent), x));
}

/// rsqrt and sqrt: x = (1 + fraction) * 2^(2 half) for even exponents, else 2 (1 + fraction) * ...
struct root_operand {
  int half;
  bool odd;
  double fraction;
};
inline root_operand root_operand_of(double x) {
  const int exponent = std::ilogb(x);
  const int half = static_cast<int>(std::floor(exponent / 2.0));
  return {half, exponent != 2 * half, std::ldexp(x, -exponent) - 1};
}

inline std::uint32_t rsqrt(std::uint32_t code) {
  const double x = operand_of(code);
  if (std::isnan(x) || x < 0) return 0x7FFFFFFF;
  if (x == 0) return code_of(1 / x);
  if (std::isinf(x)) return 0;
  const root_operand r = root_operand_of(x);
  if (!r.odd && r.fraction == 0) return code_of(std::ldexp(1.0, -r.half));
  const double ulps = std::floor(r.odd ? polynomial(rsqrt_odd_row, 64, 0x1p-17, r.fraction)
                                       : polynomial(rsqrt_even_row, 64, 0x1p-17, r.fraction));
  return code_of(std::ldexp(0.5 + ulps * 0x1p-24, -r.half));
}

inline std::uint32_t sqrt(std::uint32_t code) {
  const double x = operand_of(code);
  if (std::isnan(x) || x < 0) return 0x7FFFFFFF;
  if (x == 0 || std::isinf(x)) return code_of(x);
  const root_operand r = root_operand_of(x);
  if (!r.odd && r.fraction == 0) return code_of(std::ldexp(1.0, r.half));
  const double ulps = std::floor(r.odd ? polynomial(sqrt_odd_row, 64, 0x1p-18, r.fraction)
                                       : polynomial(sqrt_even_row, 64, 0x1p-18, r.fraction));
  return code_of(std::ldexp(1 + ulps * 0x1p-23, r.half));
}

}  // namespace samebits::numerics::hopper::oracle
