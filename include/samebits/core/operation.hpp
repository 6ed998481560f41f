// Operations: arithmetic that array functions and the command line select by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "samebits/core/config.hpp"

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

inline constexpr int operation_count = 12;

constexpr std::string_view name(operation op) {
  switch (op) {
    case operation::add: return "add";
    case operation::sub: return "sub";
    case operation::mul: return "mul";
    case operation::div: return "div";
    case operation::sqrt: return "sqrt";
    case operation::fma: return "fma";
    case operation::rem: return "rem";
    case operation::rint: return "rint";
    case operation::min: return "min";
    case operation::max: return "max";
    case operation::min_num: return "min_num";
    case operation::max_num: return "max_num";
  }
  return "?";
}

/// Returns the i-th operation, 0 <= i < operation_count.
constexpr operation operation_at(int i) { return static_cast<operation>(i); }

/// Returns the operation with this name, or nothing.
constexpr std::optional<operation> find_operation(std::string_view text) {
  for (int i = 0; i < operation_count; ++i) {
    if (name(operation_at(i)) == text) return operation_at(i);
  }
  return std::nullopt;
}

/// Returns the number of operands of an operation: 1, 2 or 3.
SAMEBITS_INLINE constexpr int operand_count(operation op) {
  if (op == operation::fma) return 3;
  return op == operation::sqrt || op == operation::rint ? 1 : 2;
}

}  // namespace samebits
