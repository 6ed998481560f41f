// Calls of functions of rows, checked and run in two steps.
#pragma once

#include "backends/dispatch/calls/row_functions.hpp"
#include "samebits/row_functions.hpp"

namespace samebits::backends {

/// The operands of a norm or of its gradient beside the rows. A view without data: there is none.
struct norm_operands {
  const_matrix_view weight = {}, rstd = {}, bias = {}, mean = {}, grad = {};
};

/// The call of a norm or of its gradient.
row_call norm_call(row_function f, const const_matrix_view& in, const matrix_view& out,
                   const layer_norm_options& options, const norm_operands& beside);

/// Checks a call whose `offset` is the caller's. The checked call has the offset that backends read.
row_call checked_rows(row_call call);

/// Runs a checked call.
void run_checked_rows(const row_call& call, const executor& where);

}  // namespace samebits::backends
