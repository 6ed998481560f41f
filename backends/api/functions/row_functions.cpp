// softmax(), log_softmax(), layer_norm() and their gradients: check arguments and choose a backend.
#include "backends/api/functions/row_calls.hpp"

#include <bit>
#include <cstdint>
#include <string>

#include "backends/api/functions/sum_checks.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"
#include "numerics/hardware/torch_operators/power.hpp"
#include "numerics/hardware/torch_operators/row_order.hpp"

namespace samebits {
namespace backends {
namespace {

bool is_power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

void check_block(const softmax_options& options) {
  const int warps = options.num_warps, elements = options.elements_per_thread;
  refuse_if(!is_power_of_two(warps) || warps > 32,
            "num_warps: must be a power of two from 1 to 32, got ", warps);
  refuse_if(elements != 0 && (!is_power_of_two(elements) || elements > 8),
            "elements_per_thread: must be 0, 1, 2, 4 or 8, got ", elements);
}

/// The functions in messages, in the order of row_function.
constexpr const char* texts[] = {"softmax",
                                 "log_softmax",
                                 "gradient of softmax",
                                 "gradient of log_softmax",
                                 "layer_norm",
                                 "gradient of layer_norm",
                                 "rms_norm",
                                 "gradient of rms_norm"};

/// Checks a view of rows that the call reads beside `out`.
void check_rows(const const_matrix_view& v, const char* which, const matrix_view& out) {
  check_like(v, which, out, "out");
  check_overlap(v, which, out);
}

/// A view that a call may lack.
struct named_operand {
  const const_matrix_view& view;
  const char* name;
};

/// Checks mean and rstd, which norms write and their gradients read.
void check_statistics(const row_call& call) {
  const named_operand statistics[] = {{call.mean, "mean"}, {call.rstd, "rstd"}};
  for (const auto& [view, which] : statistics) {
    if (view.data == nullptr) continue;
    check_read(view, which, call.out.rows, 1, format_id::fp32, call.out, "out");
    if (is_gradient(call.of)) continue;
    check_distinct(view, which);
    for (const auto& [read, name] :
         {named_operand{call.in, "in"}, {call.weight, "weight"}, {call.bias, "bias"}}) {
      if (read.data != nullptr) check_apart(read, name, view, which);
    }
  }
  if (is_gradient(call.of) || call.mean.data == nullptr || call.rstd.data == nullptr) return;
  check_apart(call.mean, "mean", call.rstd, "rstd");
}

void check_given(const const_matrix_view& v, const char* which, const matrix_view& out) {
  require(v.data != nullptr || out.rows == 0, which, ": data must not be null");
}

}  // namespace

row_call checked_rows(row_call call) {
  const row_function f = call.of;
  const matrix_view& out = call.out;
  const bool of_softmax = f < row_function::layer_norm;
  check_view(out, "out");
  check_distinct(out, "out");
  if (is_gradient(f)) check_rows(call.grad, "grad", out);
  check_rows(call.in, of_softmax && is_gradient(f) ? "result" : "in", out);
  if (f == row_function::layer_norm_gradient) check_given(call.mean, "mean", out);
  if (is_gradient(f) && !of_softmax) check_given(call.rstd, "rstd", out);
  for (const auto& [view, which] : {named_operand{call.weight, "weight"}, {call.bias, "bias"}}) {
    if (view.data != nullptr) check_read(view, which, 1, out.cols, out.format, out, "out");
  }
  check_statistics(call);
  check_at_least("offset", call.offset, 0);
  check_torch_rule(
      call.rule, texts[static_cast<int>(f)], out.format,
      f == row_function::softmax ? function_rule::triton_3_6 : function_rule::torch_2_11);
  // Rules use the remainder by the elements in 16 bytes, 4 or 8. A remainder leaves room for the
  // elements that a backend adds. The kernel of softmax's gradient begins at any element.
  call.offset = f == row_function::softmax_gradient ? 0 : call.offset % 8;
  return call;
}

void run_checked_rows(const row_call& call, const executor& where) {
  const matrix_view& out = call.out;
  const bool names_result = call.of < row_function::layer_norm && is_gradient(call.of);
  const device_scope on(
      out.space,
      {{out, "out"},
       {call.in, names_result ? "result" : "in"},
       {call.grad, is_gradient(call.of) ? "grad" : "added"},
       {call.weight, "weight"},
       {call.bias, adds_rows(call.of) && is_gradient(call.of) ? "of_sum" : "bias"},
       {call.mean, "mean"},
       {call.rstd, "rstd"},
       {call.sum, "sum"},
       {call.mask, "mask"}},
      where.stream);
  run_call(&backend::row_functions, call, out, where, "has no functions of rows");
}

row_call norm_call(row_function f, const const_matrix_view& in, const matrix_view& out,
                   const layer_norm_options& options, const norm_operands& beside) {
  return {.of = f,
          .rule = options.rule,
          .epsilon = numerics::torch_2_11::narrow(std::bit_cast<std::uint64_t>(options.epsilon)),
          .offset = options.offset,
          .grad = beside.grad,
          .in = in,
          .weight = beside.weight,
          .bias = beside.bias,
          .mean = beside.mean,
          .rstd = beside.rstd,
          .out = out};
}

namespace {

/// The call of softmax or of its logarithm; with `grad` that of its gradient.
row_call softmax_call(row_function f, const const_matrix_view& in, const matrix_view& out,
                      const softmax_options& options, const const_matrix_view& grad = {}) {
  check_block(options);
  const int elements = options.elements_per_thread;
  return {
      .of = f,
      .rule = options.rule,
      .offset = options.offset,
      .num_warps = options.num_warps,
      .elements_per_thread = elements == 0 ? numerics::torch_2_11::vector_of(out.format) : elements,
      .grad = grad,
      .in = in,
      .out = out};
}

void run_rows(const row_call& call, const executor& where) {
  run_checked_rows(checked_rows(call), where);
}

}  // namespace
}  // namespace backends

using backends::row_function, backends::run_rows, backends::softmax_call;

void softmax(const const_matrix_view& in, const matrix_view& out, const softmax_options& options,
             const executor& where) {
  run_rows(softmax_call(row_function::softmax, in, out, options), where);
}

void log_softmax(const const_matrix_view& in, const matrix_view& out,
                 const softmax_options& options, const executor& where) {
  run_rows(softmax_call(row_function::log_softmax, in, out, options), where);
}

void softmax_gradient(const const_matrix_view& grad, const const_matrix_view& result,
                      const matrix_view& out, const softmax_options& options,
                      const executor& where) {
  run_rows(softmax_call(row_function::softmax_gradient, result, out, options, grad), where);
}

void log_softmax_gradient(const const_matrix_view& grad, const const_matrix_view& result,
                          const matrix_view& out, const softmax_options& options,
                          const executor& where) {
  run_rows(softmax_call(row_function::log_softmax_gradient, result, out, options, grad), where);
}

void layer_norm(const const_matrix_view& in, const const_matrix_view& weight,
                const const_matrix_view& bias, const matrix_view& out, const matrix_view& mean,
                const matrix_view& rstd, const layer_norm_options& options, const executor& where) {
  run_rows(norm_call(row_function::layer_norm, in, out, options,
                     {.weight = weight, .rstd = rstd, .bias = bias, .mean = mean}),
           where);
}

void rms_norm(const const_matrix_view& in, const const_matrix_view& weight, const matrix_view& out,
              const matrix_view& rstd, const layer_norm_options& options, const executor& where) {
  run_rows(norm_call(row_function::rms_norm, in, out, options, {.weight = weight, .rstd = rstd}),
           where);
}

void layer_norm_gradient(const const_matrix_view& grad, const const_matrix_view& in,
                         const const_matrix_view& mean, const const_matrix_view& rstd,
                         const const_matrix_view& weight, const matrix_view& out,
                         const layer_norm_options& options, const executor& where) {
  run_rows(norm_call(row_function::layer_norm_gradient, in, out, options,
                     {.weight = weight, .rstd = rstd, .mean = mean, .grad = grad}),
           where);
}

void rms_norm_gradient(const const_matrix_view& grad, const const_matrix_view& in,
                       const const_matrix_view& rstd, const const_matrix_view& weight,
                       const matrix_view& out, const layer_norm_options& options,
                       const executor& where) {
  run_rows(norm_call(row_function::rms_norm_gradient, in, out, options,
                     {.weight = weight, .rstd = rstd, .grad = grad}),
           where);
}

}  // namespace samebits
