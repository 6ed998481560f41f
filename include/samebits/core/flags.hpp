// Flags: the exceptions of IEEE 754 as a value that an operation returns.
//
//   flag             raised by (contract §5)
//   invalid          no number is the result: Inf - Inf, 0 * Inf, 0 / 0, sqrt of a negative, ...; a
//                    signalling NaN operand; an infinite result where the format has no Inf but NaN
//   divide_by_zero   finite / 0, alone
//   overflow         a result beyond max finite as rounded with unbounded exponent, and an infinite
//                    one that saturates; always with inexact
//   underflow        an inexact result below min normal as rounded with unbounded exponent
//   inexact          the result is not the exact one
#pragma once

#include <cstdint>

#include "samebits/core/config.hpp"

namespace samebits {

/// Any of the five; the bits of a flags byte in files, too.
enum class flags : std::uint8_t {
  none = 0,
  invalid = 1,
  divide_by_zero = 2,
  overflow = 4,
  underflow = 8,
  inexact = 16,
};

SAMEBITS_INLINE constexpr flags operator|(flags a, flags b) {
  return static_cast<flags>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
SAMEBITS_INLINE constexpr flags operator&(flags a, flags b) {
  return static_cast<flags>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}
SAMEBITS_INLINE constexpr flags& operator|=(flags& a, flags b) { return a = a | b; }

/// Whether any of `asked` is raised.
///
///   if (has(r.raised, flags::overflow | flags::invalid)) ...
SAMEBITS_INLINE constexpr bool has(flags raised, flags asked) {
  return (raised & asked) != flags::none;
}

}  // namespace samebits
