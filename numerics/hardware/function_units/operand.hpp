// Operand: the fields of a binary32 operand as function units read them.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::hopper {

inline constexpr std::uint32_t fraction_mask = 0x007FFFFFu;

/// The biased exponent, 0 .. 255. Function units read a subnormal operand, field 0, as a zero.
SAMEBITS_INLINE constexpr int exponent_field(std::uint32_t x) {
  return static_cast<int>((x >> 23) & 0xFF);
}

SAMEBITS_INLINE constexpr std::uint32_t sign_of(std::uint32_t x) { return x & binary32::sign_bit; }

/// A normal result. `significand` counts from the start of the binade in ulp; 2^23 or more carries
/// into the exponent.
SAMEBITS_INLINE constexpr std::uint32_t join(std::uint32_t sign, int field,
                                             std::int64_t significand) {
  return sign |
         ((static_cast<std::uint32_t>(field) << 23) + static_cast<std::uint32_t>(significand));
}

}  // namespace samebits::numerics::hopper
