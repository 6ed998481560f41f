// Norms of sums and their gradients: on device memory one call, on host memory two.
#include "backends/api/functions/fused_call.hpp"
#include "backends/api/functions/row_calls.hpp"
#include "samebits/operators.hpp"

namespace samebits {
namespace backends {
namespace {

/// in + added, with the checks of all three.
checked_fused sum_call(const const_matrix_view& in, const char* in_name,
                       const const_matrix_view& added, const char* added_name,
                       const matrix_view& sum, const char* sum_name) {
  checked_fused call({fused::scaled_sum, {}}, {{sum, sum_name}});
  call.add(in, in_name);
  call.add(added, added_name);
  return call;
}

/// Runs a norm of in + added. `call`: that of the norm of `sum`. Device backends have one kernel for
/// both.
void run_norm_of_sum(row_call call, const const_matrix_view& in, const const_matrix_view& added,
                     const matrix_view& sum, const executor& where) {
  const checked_fused first = sum_call(in, "in", added, "added", sum, "sum");
  check_view(call.out, "out");
  check_shape_of(sum, "sum", call.out, "out");
  check_apart(sum, "sum", call.out, "out");
  call = checked_rows(call);
  for (const const_matrix_view& statistics : {call.mean, call.rstd}) {
    if (statistics.data == nullptr) continue;
    check_apart(in, "in", statistics, "mean or rstd");
    check_apart(added, "added", statistics, "mean or rstd");
  }
  check_overlap(in, "in", call.out);
  check_overlap(added, "added", call.out);
  if (sum.space == memory_space::device) {
    call.of = call.of == row_function::layer_norm ? row_function::sum_layer_norm
                                                  : row_function::sum_rms_norm;
    call.in = in;
    call.grad = added;
    call.sum = sum;
  } else {
    first.run(where);
  }
  run_checked_rows(call, where);
}

/// Runs the gradient of a norm of a sum, plus `of_sum`.
void run_gradient_of_sum(row_call call, const const_matrix_view& of_sum, const executor& where) {
  call = checked_rows(call);
  if (of_sum.data == nullptr) return run_checked_rows(call, where);
  const checked_fused last = sum_call(call.out, "out", of_sum, "of_sum", call.out, "out");
  check_apart(of_sum, "of_sum", call.out, "out");
  if (call.out.space == memory_space::host) {
    run_checked_rows(call, where);
    return last.run(where);
  }
  call.of = call.of == row_function::layer_norm_gradient ? row_function::sum_layer_norm_gradient
                                                         : row_function::sum_rms_norm_gradient;
  call.bias = of_sum;
  run_checked_rows(call, where);
}

}  // namespace
}  // namespace backends

using backends::row_call;
using backends::row_function;

void add_layer_norm(const const_matrix_view& in, const const_matrix_view& added,
                    const const_matrix_view& weight, const const_matrix_view& bias,
                    const matrix_view& sum, const matrix_view& out, const matrix_view& mean,
                    const matrix_view& rstd, const layer_norm_options& options,
                    const executor& where) {
  row_call call = backends::norm_call(row_function::layer_norm, sum, out, options);
  call.weight = weight;
  call.bias = bias;
  call.mean = mean;
  call.rstd = rstd;
  backends::run_norm_of_sum(call, in, added, sum, where);
}

void add_rms_norm(const const_matrix_view& in, const const_matrix_view& added,
                  const const_matrix_view& weight, const matrix_view& sum, const matrix_view& out,
                  const matrix_view& rstd, const layer_norm_options& options,
                  const executor& where) {
  row_call call = backends::norm_call(row_function::rms_norm, sum, out, options);
  call.weight = weight;
  call.rstd = rstd;
  backends::run_norm_of_sum(call, in, added, sum, where);
}

void add_layer_norm_gradient(const const_matrix_view& grad, const const_matrix_view& of_sum,
                             const const_matrix_view& sum, const const_matrix_view& mean,
                             const const_matrix_view& rstd, const const_matrix_view& weight,
                             const matrix_view& out, const layer_norm_options& options,
                             const executor& where) {
  row_call call = backends::norm_call(row_function::layer_norm_gradient, sum, out, options);
  call.grad = grad;
  call.weight = weight;
  call.mean = mean;
  call.rstd = rstd;
  backends::run_gradient_of_sum(call, of_sum, where);
}

void add_rms_norm_gradient(const const_matrix_view& grad, const const_matrix_view& of_sum,
                           const const_matrix_view& sum, const const_matrix_view& rstd,
                           const const_matrix_view& weight, const matrix_view& out,
                           const layer_norm_options& options, const executor& where) {
  row_call call = backends::norm_call(row_function::rms_norm_gradient, sum, out, options);
  call.grad = grad;
  call.weight = weight;
  call.rstd = rstd;
  backends::run_gradient_of_sum(call, of_sum, where);
}

}  // namespace samebits
