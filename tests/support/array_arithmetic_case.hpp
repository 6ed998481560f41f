// One call of array arithmetic under test: its memory, and every element compared with a scalar
// rule.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "samebits/array_arithmetic.hpp"
#include "support/arithmetic_case.hpp"
#include "support/array_generators.hpp"
#include "support/strided_buffer.hpp"

namespace samebits::support {

enum class flags_asked : std::uint8_t { none, each };

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
  std::uint64_t content = 0;  ///< seed of operands of its own; 0: those of all cases
};

std::ostream& operator<<(std::ostream& out, const array_arithmetic_case& c);

/// Cases of every operation, in one format and in mixed ones; half of them of dense arrays.
rc::Gen<array_arithmetic_case> array_arithmetic_cases();

/// Dense arrays of one shape everywhere.
array_arithmetic_case dense_case(operation op, const operand_formats& from, format_id to,
                                 std::int64_t rows, std::int64_t cols, const cast_rule& rule = {});

/// The memory of a call.
struct compute_memory {
  std::array<strided_buffer, 3> in;
  strided_buffer out;
  strided_buffer each;

  /// Random operands of the operation, repeated over the elements; guards in the results.
  explicit compute_memory(const array_arithmetic_case& c);

  /// Operands of an element.
  [[nodiscard]] operands at(const array_arithmetic_case& c, std::int64_t row,
                            std::int64_t col) const;
};

array_operands operands_of(compute_memory& m);
flags_view flags_of(compute_memory& m);
compute_options options_of(const array_arithmetic_case& c);

/// What compute() must do for an element: its operation, operands and random bits.
arithmetic_case element_case(const array_arithmetic_case& c, const operands& x, std::int64_t row,
                             std::int64_t col);

/// Calls the library: `union_of` is what compute_with_flags returned.
using compute_function = std::function<flags(
    operation op, const array_operands& in, const matrix_view& out, const compute_options& options,
    flags_asked asked, const flags_view& each, int threads)>;

/// compute() or compute_with_flags() of a backend.
compute_function computing_on(const std::string& backend);

/// What an element must be.
using reference_function = std::function<oracle::rounded_result(const arithmetic_case& c)>;

/// The result of the scalar function.
oracle::rounded_result by_definition(const arithmetic_case& c);

/// Runs the case in fresh memory and compares every element, every flag and all guards.
::testing::AssertionResult conforms(const array_arithmetic_case& c, const compute_function& compute,
                                    const reference_function& reference, const std::string& where);

}  // namespace samebits::support
