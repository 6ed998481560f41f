// Calls of evaluate() and evaluate_gradient() by the rule `exact`: the checks of this rule alone.
#pragma once

#include "backends/dispatch/calls/exact_function.hpp"

namespace samebits::backends {

/// The call on one matrix, after the checks of what only the rule `exact` refuses: functions,
/// formats and roundings that the rule lacks. `grad` is null unless the gradient is wanted. The
/// views are checked.
exact_call exact_call_of(function f, const const_matrix_view* grad, const const_matrix_view& in,
                         const matrix_view& out, const evaluate_options& options);

}  // namespace samebits::backends
