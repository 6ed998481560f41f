// evaluate() and evaluate_gradient() of matrices and of tensor lists: check where the arguments
// lie, and run the calls.
#include "samebits/evaluate.hpp"

#include <cstddef>
#include <string>
#include <vector>

#include "backends/api/functions/function_call.hpp"
#include "backends/api/lists/list_checks.hpp"
#include "backends/api/view_checks.hpp"
#include "backends/dispatch/access.hpp"
#include "backends/dispatch/calls/list.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"

namespace samebits {
namespace backends {
namespace {

void check_argument(const const_matrix_view& v, const char* which, const matrix_view& out) {
  check_view(v, which);
  check_shape_of(v, which, out, "out");
  check_space_of(v, which, out, "out");
  check_overlap(v, which, out);
}

/// `grad` is null unless the gradient is wanted.
void evaluate_matrix(function f, const const_matrix_view* grad, const const_matrix_view& in,
                     const matrix_view& out, const evaluate_options& options,
                     const executor& where) {
  check_function(f, options);
  check_view(out, "out");
  check_distinct(out, "out");
  check_argument(in, "in", out);
  if (grad != nullptr) check_argument(*grad, "grad", out);
  const evaluate_call call = evaluate_call_of(f, grad, in, out, options);
  check_threads(where);
  const device_scope on(
      out.space,
      {{out, "out"}, {in, "in"}, {grad == nullptr ? nullptr : address_of(*grad), "grad"}},
      where.stream);
  run_functions({&call, 1}, out.space, where);
}

void check_formats_of(const tensor_list& list, const char* which, const tensor_list& out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    require(list[i].view.format == out[i].view.format, list_item{which, i, list[i].name},
            ": format must be that of ", list_item{"out", i, out[i].name}, ", ", out[i].view.format,
            ", got ", list[i].view.format);
  }
}

void check_list_argument(const tensor_list& list, const char* which, const tensor_list& out,
                         function_rule rule) {
  check_list(list, which, number_formats);
  check_written(out, "out", list, which);
  if (rule != function_rule::exact) check_formats_of(list, which, out);
}

/// `grad` is null unless the gradient is wanted.
void evaluate_list(function f, const tensor_list* grad, const tensor_list& in,
                   const tensor_list& out, const evaluate_options& options, const executor& where) {
  check_function(f, options);
  check_list_argument(in, "in", out, options.rule);
  if (grad != nullptr) check_list_argument(*grad, "grad", out, options.rule);
  std::vector<evaluate_call> calls;
  calls.reserve(out.size());
  evaluate_options each = options;
  for (std::size_t i = 0; i < out.size(); ++i) {
    each.random.stream = options.random.stream + i;
    const const_matrix_view g = grad == nullptr ? const_matrix_view{} : (*grad)[i].view;
    calls.push_back(
        evaluate_call_of(f, grad == nullptr ? nullptr : &g, in[i].view, out[i].view, each));
  }
  check_threads(where);
  const device_scope on =
      scope_of({{out, "out"}, {in, "in"}, {grad == nullptr ? in : *grad, "grad"}}, {}, where.stream,
               completion::enqueued);
  run_functions(calls, out.space(), where);
}

}  // namespace
}  // namespace backends

void evaluate(function f, const const_matrix_view& in, const matrix_view& out,
              const evaluate_options& options, const executor& where) {
  backends::evaluate_matrix(f, nullptr, in, out, options, where);
}

void evaluate_gradient(function f, const const_matrix_view& grad, const const_matrix_view& in,
                       const matrix_view& out, const evaluate_options& options,
                       const executor& where) {
  backends::evaluate_matrix(f, &grad, in, out, options, where);
}

void evaluate(function f, const tensor_list& in, const tensor_list& out,
              const evaluate_options& options, const executor& where) {
  backends::evaluate_list(f, nullptr, in, out, options, where);
}

void evaluate_gradient(function f, const tensor_list& grad, const tensor_list& in,
                       const tensor_list& out, const evaluate_options& options,
                       const executor& where) {
  backends::evaluate_list(f, &grad, in, out, options, where);
}

}  // namespace samebits
