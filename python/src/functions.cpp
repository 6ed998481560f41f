// Functions of arrays and of lists of arrays, by a rule that says whose bits they return.
#include <optional>

#include "call.hpp"
#include "samebits/error.hpp"
#include "samebits/evaluate.hpp"
#include "tensor_list.hpp"

namespace samebits::python {
namespace {

// `to` is None for x's format.
nb::object evaluate(nb::handle name, nb::handle x, nb::handle grad, nb::handle format,
                    nb::handle to, nb::handle how, nb::handle out, nb::handle where) {
  void* const on = stream_in(where);
  const auto f = enumerator_of<function>(name, "function");
  auto options = options_of<evaluate_options>(how);
  const bool gradient = !grad.is_none();
  const array in = array_of(x, {.name = "x", .format = format_of(format), .stream = on});
  array factors;
  if (gradient) {
    factors = array_of(grad, {.name = "grad", .format = format_of(format), .stream = on});
    check_shape({&factors, "grad"}, in.dims, in.shape);
  }
  const output target = output_like(x, in, format_of(to, "to").value_or(in.format), out, on);
  const operand operands[] = {{&factors, "grad"}, {&in, "x"}, {&target.a, "out"}};
  const executor with = executor_of(where, in, in.size());
  const auto call = [&](const auto& view) {
    if (gradient) return evaluate_gradient(f, view(0), view(1), view(2), options, with);
    samebits::evaluate(f, view(0), view(1), options, with);
  };
  const int skipped = gradient ? 0 : 1;
  run_slices(in.dims, in.shape, operands + skipped, 2 - skipped, 3 - skipped, options.random, call);
  return target.object;
}

// `format` is that of x and grads, `to` that of out; None: the dtypes' own formats.
void evaluate_list(nb::handle name, nb::list x, nb::handle grads, nb::handle format, nb::list out,
                   nb::handle to, nb::list names, nb::handle how, nb::handle where) {
  const auto f = enumerator_of<function>(name, "function");
  const auto options = options_of<evaluate_options>(how);
  const listed_arrays in(x, names, "x", access::read, format, where);
  std::optional<listed_arrays> grad;
  if (!grads.is_none()) {
    grad.emplace(nb::cast<nb::list>(grads), names, "grad", access::read, format, where);
  }
  const listed_arrays results(out, names, "out", access::write, to, where);
  const auto call = [&] {
    if (grad) return evaluate_gradient(f, grad->get(), in.get(), results.get(), options, in.on());
    samebits::evaluate(f, in.get(), results.get(), options, in.on());
  };
  run(in.elements(), call);
}

// Whether a rule has a function of fp32 numbers.
bool has_function(function_rule rule, function f) {
  const matrix_view none = {nullptr, format_id::fp32, 0, 0};
  try {
    samebits::evaluate(f, none, none, {.rule = rule}, {.backend = "reference"});
  } catch (const unsupported&) {
    return false;
  }
  return true;
}

// Returns (name, what it computes, a rule that has it) of the functions without a parameter.
nb::list unary_functions() {
  nb::list result;
  for (const auto& f : table_of<function>) {
    if (has_parameter(f.value)) continue;
    for (const auto& rule : table_of<function_rule>) {
      if (!has_function(rule.value, f.value)) continue;
      result.append(nb::make_tuple(f.name, f.doc, rule.name));
      break;
    }
  }
  return result;
}

}  // namespace

void bind_functions(nb::module_& m) {
  def(m, "evaluate", &evaluate, "Evaluates a function, or its gradient if `grad` is given.");
  m.def("unary_functions", &unary_functions, "Returns what samebits.functions documents.");
  def(m, "evaluate_list", &evaluate_list,
      "Evaluates a function, or its gradient if `grads` are given, tensor by tensor.");
}

}  // namespace samebits::python
