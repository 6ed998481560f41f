// Checked calls of matmul(), and those whose K is divided into slices.
#pragma once

#include "backends/dispatch/calls/matmul.hpp"

namespace samebits::backends {

/// Checks the arguments of matmul(), and throws what it throws. d may overlap the other views.
matmul_call checked_matmul(const const_matrix_view& a, const const_matrix_view& b,
                           const matrix_view& d, const accumulator& sum,
                           const matmul_options& options);

/// Requires that d overlaps no other view of the call.
void check_disjoint(const matmul_call& call);

/// Whether a call needs multiply_in_slices(): it has several slices or a residue, adds C after the
/// first slice, promotes binary32 chains, or rounds fp32 operands to tf32.
bool is_in_slices(const matmul_call& call);

/// Computes a checked call for which is_in_slices() holds. The backend multiplies copies of each
/// slice of the operands. D is written after the last slice.
void multiply_in_slices(const backend& by, const matmul_call& call, const executor& where);

}  // namespace samebits::backends
