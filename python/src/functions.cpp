// Functions of arrays and of lists of arrays, by a rule that says whose bits they return.
#include <optional>

#include "call.hpp"
#include "samebits/evaluate.hpp"
#include "tensor_list.hpp"

namespace samebits::python {
namespace {

// Names of the C++ arguments, for messages.
constexpr std::initializer_list<argument_name> names_of_arguments = {
    {"in", "x"},
    {"round", "rounding"},
    {"random.bits", "random_bits"},
};

// What one call evaluates. `function_rule` says whose bits, `packed_rule` how they are rounded.
struct evaluation {
  function f;
  evaluate_options options;

  evaluation(int number, int function_rule, int packed_rule, nb::handle random,
             nb::handle parameter)
      : f(static_cast<function>(number)) {
    const cast_rule rule = rule_of(packed_rule);
    options = {.rule = static_cast<samebits::function_rule>(function_rule),
               .rounding = rule.rounding,
               .overflow = rule.overflow,
               .random = random_of(random)};
    if (!parameter.is_none()) options.parameter = nb::cast<double>(parameter);
  }
};

// `to` is None for x's format.
nb::object evaluate(int f, int function_rule, nb::handle x, nb::handle grad, int format,
                    nb::handle parameter, nb::handle to, int packed_rule, nb::handle random,
                    nb::handle out, nb::handle threads, nb::handle backend, nb::handle stream) {
  void* const on = stream_of(stream);
  const bool gradient = !grad.is_none();
  const array in = array_of(x, {.name = "x", .format = format_of(format), .stream = on});
  array factors;
  if (gradient) {
    factors = array_of(grad, {.name = "grad", .format = format_of(format), .stream = on});
    check_shape({&factors, "grad"}, in.dims, in.shape);
  }
  const output target =
      output_like(x, in, to.is_none() ? in.format : format_named(to, "to"), out, on);
  evaluation e(f, function_rule, packed_rule, random, parameter);
  const operand operands[] = {{&in, "x"}, {&target.a, "out"}, {&factors, "grad"}};
  const slices s = slices_of(in.dims, in.shape, operands, gradient ? 3 : 2);
  if (s.loops > 0) {
    check_overlap(operands[1], &operands[0], 1);
    if (gradient) check_overlap(operands[1], &operands[2], 1);
  }
  const std::uint64_t first = e.options.random.offset;
  const executor where = executor_of(threads, backend, stream, in, in.size());
  const auto slice = [&](const std::int64_t* offsets, std::int64_t flat) {
    const auto view = [&](int i) { return view_of(s, i, *operands[i].a, offsets); };
    e.options.random.offset = first + static_cast<std::uint64_t>(flat);
    if (gradient) {
      evaluate_gradient(e.f, view(2), view(0), view(1), e.options, where);
    } else {
      samebits::evaluate(e.f, view(0), view(1), e.options, where);
    }
  };
  run(
      in.size(), [&] { s.for_each(slice); }, names_of_arguments);
  return target.object;
}

// `format` is that of x and grads, `to` that of out; -1: the dtypes' own formats.
void evaluate_list(int f, int function_rule, nb::list x, nb::handle grads, int format,
                   nb::handle parameter, nb::list out, int to, nb::list names, int packed_rule,
                   nb::handle random, nb::handle threads, nb::handle backend, nb::handle stream) {
  void* const s = stream_of(stream);
  const listed_arrays in(x, names, "x", access::read, format, s);
  std::optional<listed_arrays> grad;
  if (!grads.is_none()) {
    grad.emplace(nb::cast<nb::list>(grads), names, "grad", access::read, format, s);
  }
  const listed_arrays results(out, names, "out", access::write, to, s);
  const evaluation e(f, function_rule, packed_rule, random, parameter);
  const executor where = in.on(threads, backend, stream);
  const auto call = [&] {
    if (grad) {
      evaluate_gradient(e.f, grad->get(), in.get(), results.get(), e.options, where);
    } else {
      samebits::evaluate(e.f, in.get(), results.get(), e.options, where);
    }
  };
  run(in.elements(), call, names_of_arguments);
}

}  // namespace

void bind_functions(nb::module_& m) {
  m.def("evaluate", &evaluate, nb::arg("function"), nb::arg("function_rule"), nb::arg("x").none(),
        nb::arg("grad").none(), nb::arg("format"), nb::arg("parameter").none(),
        nb::arg("to").none(), nb::arg("rule"), nb::arg("random").none(), nb::arg("out").none(),
        nb::arg("threads").none(), nb::arg("backend").none(), nb::arg("stream").none(),
        "Evaluates a function, or its gradient if `grad` is given.");
  m.def("evaluate_list", &evaluate_list, nb::arg("function"), nb::arg("function_rule"),
        nb::arg("x"), nb::arg("grads").none(), nb::arg("format"), nb::arg("parameter").none(),
        nb::arg("out"), nb::arg("to"), nb::arg("names"), nb::arg("rule"), nb::arg("random").none(),
        nb::arg("threads").none(), nb::arg("backend").none(), nb::arg("stream").none(),
        "Evaluates a function, or its gradient if `grads` are given, tensor by tensor.");
}

}  // namespace samebits::python
