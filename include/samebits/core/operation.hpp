// Operations: the arithmetic that arrays and the command line know by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "samebits/core/config.hpp"

namespace samebits {

enum class operation : std::uint8_t {
  add,      ///< a + b
  sub,      ///< a - b
  mul,      ///< a * b
  div,      ///< a / b
  sqrt,     ///< the square root of a
  fma,      ///< a * b + c
  rem,      ///< a - n * b, n = a / b rounded to the nearest integer, ties to even
  rint,     ///< a rounded to an integer by the rule's mode
  min,      ///< the lesser; NaN if either is
  max,      ///< the greater; NaN if either is
  min_num,  ///< the lesser; the other one if either is NaN
  max_num,  ///< the greater; the other one if either is NaN
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

/// The i-th operation, 0 <= i < operation_count.
constexpr operation operation_at(int i) { return static_cast<operation>(i); }

/// The operation of that name, or nothing.
constexpr std::optional<operation> find_operation(std::string_view text) {
  for (int i = 0; i < operation_count; ++i) {
    if (name(operation_at(i)) == text) return operation_at(i);
  }
  return std::nullopt;
}

/// How many operands it takes: 1, 2 or 3.
SAMEBITS_INLINE constexpr int operand_count(operation op) {
  if (op == operation::fma) return 3;
  return op == operation::sqrt || op == operation::rint ? 1 : 2;
}

}  // namespace samebits
