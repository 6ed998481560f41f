// One call and its expected result, as the case writer stores it and the killer repeats it.
#pragma once

#include <cstdint>

namespace samebits::mutation {

/// What is called; the members of `record` that a kind does not name are 0.
enum class call : std::uint8_t {
  compute,       ///< op, a, b, c with their formats into `to`
  convert,       ///< a of format[0] into `to`; flags: 1 inexact, 2 overflow
  to_integer,    ///< a of format[0]; extra: bits, with bit 7 set if signed
  from_integer,  ///< a as an integer of `extra` as above, into `to`
  scale_b,       ///< a of format[0] by the int32 in b, into `to`
  log_b,         ///< a of format[0]
  /// a and b of format[0] and [1]; expected: 0 less, 1 equal, 2 greater, 3 unordered. op 1: one
  /// format that may have no arithmetic
  compare,
  total_order,  ///< a and b of format[0]
  neighbours,   ///< a of format[0]; expected: next up, and next down in c
  negate,       ///< a of format[0]
  random_word,  ///< seed a, stream b, index c, K
};

struct record {
  call kind;
  std::uint8_t op;
  std::uint8_t format[3];
  std::uint8_t to;
  std::uint8_t rounding, overflow, nan;
  std::uint8_t k;
  std::uint8_t extra;
  std::uint8_t flags;  ///< expected
  std::uint32_t r;
  std::uint64_t a, b, c;
  std::uint64_t expected;
};

}  // namespace samebits::mutation
