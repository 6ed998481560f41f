// The table of an operation on all codes of an 8-bit format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "samebits/convert.hpp"
#include "samebits/core/flags.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/operation.hpp"

namespace fpinspect {

inline constexpr std::size_t table_codes = 256;

/// Results for all codes a, and for all pairs of codes (a, b).
struct operation_table {
  samebits::operation op;
  samebits::format_id format;
  std::size_t columns;                ///< 256, or 1 for an operation with one operand
  std::vector<std::uint8_t> results;  ///< of (a, b) at index a * columns + b
  std::vector<samebits::flags> raised;

  [[nodiscard]] std::uint8_t result(std::size_t a, std::size_t b) const {
    return results[a * columns + b];
  }
};

/// @param op  an operation with one or two operands
/// @param format  e4m3 or e5m2
operation_table table_of(samebits::operation op, samebits::format_id format,
                         const samebits::convert_options& rule);

/// Numbers of results by kind.
struct table_summary {
  std::size_t zero = 0;
  std::size_t subnormal = 0;
  std::size_t normal = 0;
  std::size_t infinite = 0;
  std::size_t nan = 0;
  std::array<std::size_t, 5>
      flags{};                 ///< results that raise each flag, in the order of named_flags
  std::size_t distinct = 0;    ///< different codes among the results
  std::size_t asymmetric = 0;  ///< pairs (a, b) whose result differs from that of (b, a)
};

table_summary summary_of(const operation_table& table);

}  // namespace fpinspect
