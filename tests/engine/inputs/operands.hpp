// Operands that make an operation hard.
#pragma once

#include <array>
#include <vector>

#include "engine/core/choices.hpp"
#include "samebits/arithmetic.hpp"
#include "samebits/core/format.hpp"

namespace samebits::support {

/// The formats of arithmetic.
inline const std::vector<format_id> arithmetic_formats = [] {
  std::vector<format_id> formats;
  for (int i = 0; i < format_count; ++i) {
    if (has_arithmetic(format_at(i))) formats.push_back(format_at(i));
  }
  return formats;
}();

/// Formats of the operands in order.
using operand_formats = std::array<format_id, 3>;

/// Operands that make an operation hard: bit patterns of every family, near-copies of each other
/// (cancellation, n * y), and such that the result falls on or beside a tie, an extreme or the
/// least normal value of the destination.
operands draw_operands(operation op, const operand_formats& from, format_id to,
                       const word_source& next);

}  // namespace samebits::support
