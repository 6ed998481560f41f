// Functions of matrices and of tensor lists as cases.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "engine/core/problem.hpp"
#include "samebits/evaluate.hpp"

namespace samebits::support {

/// One tensor of a call. `grad` is read by gradients alone.
struct evaluated_tensor {
  format_id from = format_id::fp32, grad = format_id::fp32, to = format_id::fp32;
  array_layout in = {}, gradient = {}, out = {};

  friend constexpr bool operator==(const evaluated_tensor&, const evaluated_tensor&) = default;
};

/// Whether the result is written over an operand.
enum class written_over : std::uint8_t { nothing, operand, gradient };

struct evaluate_case {
  function of = function::exp;
  bool gradient = false;
  evaluate_options options = {};
  std::vector<evaluated_tensor> tensors = {};
  bool listed = false;  ///< one call on lists; otherwise there is one tensor
  written_over over = written_over::nothing;
  std::uint32_t first = 0,
                step = 0;  ///< operands are codes first, first + step, ... unless it is 0
  int threads = 1;
  std::uint64_t content = 0;
};
std::ostream& operator<<(std::ostream& out, const evaluate_case& c);

// The buffers of a tensor: operand, gradient, result.
/// Where tensor number i is written.
matrix_view evaluated_at(const evaluate_case& c, const call_site& site, std::size_t tensor);

/// evaluate() and evaluate_gradient() by every rule, on matrices and on lists.
operation_of<evaluate_case> evaluations();
/// Every function, rule, gradient, parameter and pair of formats that there is, on one matrix.
std::vector<evaluate_case> every_evaluation();

/// Every call that operands of a format have, by rule `exact` or by the others, on codes first,
/// first + step, ...
array_operation evaluations_of_codes(format_id from, bool exact, std::int64_t count,
                                     std::uint32_t first, std::uint32_t step);

/// What the definition in numerics/ leaves, one element after another.
returned_values evaluate_by_definition(const evaluate_case& c, const call_site& site);

}  // namespace samebits::support
