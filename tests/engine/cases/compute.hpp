// Calls of array arithmetic as cases.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/core/layout.hpp"
#include "engine/core/problem.hpp"
#include "engine/inputs/operands.hpp"
#include "samebits/array_arithmetic.hpp"

namespace samebits::support {

enum class flags_asked : std::uint8_t {
  none,
  all,   ///< the union over all elements
  each,  ///< of each element, and the union
};

struct array_arithmetic_case {
  operation op = operation::add;
  operand_formats from = {};
  format_id to = format_id::fp32;
  std::array<array_layout, 3> in;
  array_layout out;
  array_layout each;  ///< of the flags
  flags_asked asked = flags_asked::none;
  cast_rule rule = {};
  random_stream random = {};
  int threads = 1;
  std::uint64_t content = 0;  ///< seed of the operands
  /// How many operands are drawn, which repeat. 0: those of element i are the bits of i, lowest first.
  std::int64_t drawn = 67;
  int over = -1;       ///< the operand that the result overwrites; -1: none
  bool alike = false;  ///< every operand is the memory of the first
};

void describe(array_arithmetic_case& c, case_fields& fields);

/// Dense arrays of one shape everywhere.
array_arithmetic_case dense_case(operation op, const operand_formats& from, format_id to,
                                 std::int64_t rows, std::int64_t cols, const cast_rule& rule = {});

/// compute() and compute_with_flags(); of cuda-native what it has.
operation_of<array_arithmetic_case> computations(std::string_view backend = {});

compute_options options_of(const array_arithmetic_case& c);

// The buffers of a case: three operands, the result, the flags of each element, all flags.
inline constexpr std::size_t at_result = 3, at_each_flags = 4, at_all_flags = 5;

}  // namespace samebits::support
