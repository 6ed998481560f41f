// Flags: the exceptions of IEEE 754 as a value that an operation returns.
//
//   flag             raised by (contract §5)
//   invalid          an operation without a number as result: Inf - Inf, 0 * Inf, 0 / 0, sqrt of a
//                    negative number, ...; a signalling NaN operand; an infinite result in a format
//                    with NaN but without Inf
//   divide_by_zero   finite / 0; no other flag
//   overflow         a result that exceeds max finite as rounded with unbounded exponent; an
//                    infinite result that saturates; always with inexact
//   underflow        an inexact result below min normal as rounded with unbounded exponent
//   inexact          a result that differs from the exact result
#pragma once

#include <cstdint>

#include "samebits/core/config.hpp"

namespace samebits {

/// Any combination of the five flags. Files store a flags byte with the same bits.
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

/// Returns whether any of `asked` is raised.
///
///   if (has(r.raised, flags::overflow | flags::invalid)) ...
SAMEBITS_INLINE constexpr bool has(flags raised, flags asked) {
  return (raised & asked) != flags::none;
}

}  // namespace samebits
