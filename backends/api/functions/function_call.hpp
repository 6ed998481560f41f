// Calls of evaluate() and evaluate_gradient(): what matrices and tensor lists share.
#pragma once

#include <span>

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/calls/evaluate.hpp"

namespace samebits::backends {

/// Checks what does not depend on the matrices: the function and the options. Throws
/// invalid_argument.
void check_function(function f, const evaluate_options& options);

/// The call on one matrix, after the checks of formats and options. `grad` is null unless the
/// gradient is wanted. check_function() was called, and the views are checked.
/// @throws invalid_argument  for more random bits than functions have, or formats that differ
/// @throws unsupported  for a function, format or rounding that the rule lacks
evaluate_call evaluate_call_of(function f, const const_matrix_view* grad,
                               const const_matrix_view& in, const matrix_view& out,
                               const evaluate_options& options);

/// Chooses one backend for all calls and runs them in order. All views lie in `space`.
/// @throws unsupported, before anything is written, if the backend has no functions of arrays
void run_functions(std::span<const evaluate_call> calls, memory_space space, const executor& where);

}  // namespace samebits::backends
