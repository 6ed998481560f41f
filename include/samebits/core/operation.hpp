// Operations: arithmetic that array functions and the command line select by name.
#pragma once

#include <cstdint>

#include "samebits/core/config.hpp"
#include "samebits/core/table.hpp"

namespace samebits {

/// An operation on one, two or three operands.
enum class operation : std::uint8_t {
  add,      ///< a + b
  sub,      ///< a - b
  mul,      ///< a * b
  div,      ///< a / b
  sqrt,     ///< the square root of a
  fma,      ///< a * b + c
  rem,      ///< a - n * b, n = a / b rounded to the nearest integer, ties to even
  rint,     ///< a rounded to an integer by the rule's mode
  min,      ///< the smaller operand; NaN if either operand is NaN
  max,      ///< the larger operand; NaN if either operand is NaN
  min_num,  ///< the smaller operand; if one operand is NaN, the other one
  max_num,  ///< the larger operand; if one operand is NaN, the other one
};
template <>
inline constexpr auto table_of<operation> = enum_table<operation::max_num>(
    {"add", "sub", "mul", "div", "sqrt", "fma", "rem", "rint", "min", "max", "min_num", "max_num"});

/// Returns the number of operands of an operation: 1, 2 or 3.
SAMEBITS_INLINE constexpr int operand_count(operation op) {
  if (op == operation::fma) return 3;
  return op == operation::sqrt || op == operation::rint ? 1 : 2;
}

}  // namespace samebits
