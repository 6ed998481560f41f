// evaluate() and evaluate_gradient() by the rule `exact`: called after the checks of all rules.
#pragma once

#include "samebits/evaluate.hpp"

namespace samebits::backends {

/// Checks what only the rule `exact` refuses, chooses a backend and calls it. `grad` is null unless
/// the gradient is wanted. The views are checked.
void run_exact(function f, const const_matrix_view* grad, const const_matrix_view& in,
               const matrix_view& out, const evaluate_options& options, const executor& where);

}  // namespace samebits::backends
