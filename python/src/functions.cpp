// Functions of arrays and of lists of arrays, by a rule that says whose bits they return.
#include <optional>

#include "c_call.hpp"
#include "samebits/evaluate.hpp"
#include "tensor_list.hpp"

namespace samebits::python {
namespace {

constexpr const char* argument_names[] = {"x", "grad", "out"};

// The arrays of one call: x, grad if the gradient is wanted, out.
struct evaluation {
  array x;
  array grad;
  array out;
  bool gradient = false;

  [[nodiscard]] slices all() const {
    operand operands[3] = {{&x, argument_names[0]}};
    int count = 1;
    if (gradient) operands[count++] = {&grad, argument_names[1]};
    operands[count++] = {&out, argument_names[2]};
    const slices s = slices_of(x.dims, x.shape, operands, count);
    if (s.loops > 0) check_overlap(operands[count - 1], operands, count - 1);
    return s;
  }
};

std::int32_t evaluate_slice(const evaluation& e, int f, const slices& s,
                            const std::int64_t* offsets, const samebits_evaluate_options& options,
                            const samebits_executor& where) {
  const samebits_view in = c::view_of(s, 0, e.x, offsets);
  const samebits_view out = c::view_of(s, e.gradient ? 2 : 1, e.out, offsets);
  if (!e.gradient) return samebits_evaluate(f, &in, &out, &options, &where);
  const samebits_view grad = c::view_of(s, 1, e.grad, offsets);
  return samebits_evaluate_gradient(f, &grad, &in, &out, &options, &where);
}

samebits_evaluate_options options_of(int function_rule, int packed_rule, nb::handle random,
                                     nb::handle parameter) {
  samebits_evaluate_options options = SAMEBITS_EVALUATE_OPTIONS_INIT;
  options.rule = function_rule;
  const c::rule r(packed_rule);
  options.rounding = r.rounding;
  options.overflow = r.overflow;
  options.random = c::random_of(random);
  if (!parameter.is_none()) {
    options.has_parameter = 1;
    options.parameter = nb::cast<double>(parameter);
  }
  return options;
}

// `function_rule` says whose bits, `packed_rule` how they are rounded; `to` is None for x's format.
nb::object evaluate(int f, int function_rule, nb::handle x, nb::handle grad, int format,
                    nb::handle parameter, nb::handle to, int packed_rule, nb::handle random,
                    nb::handle out, nb::handle threads, nb::handle backend, nb::handle stream) {
  void* const cuda_stream = stream_of(stream);
  evaluation e;
  e.x = array_of(x, {.name = "x", .format = format_of(format), .stream = cuda_stream});
  e.gradient = !grad.is_none();
  if (e.gradient) {
    e.grad = array_of(grad, {.name = "grad", .format = format_of(format), .stream = cuda_stream});
    check_shape({&e.grad, "grad"}, e.x.dims, e.x.shape);
  }
  const format_id to_format = to.is_none() ? e.x.format : format_named(to, "to");
  nb::object result;
  if (out.is_none()) {
    output fresh = new_output(x, e.x, to_format);
    result = std::move(fresh.object);
    e.out = std::move(fresh.a);
  } else {
    result = nb::borrow(out);
    const argument written = {
        .name = "out", .needs = access::write, .format = to_format, .stream = cuda_stream};
    e.out = array_of(out, written);
    check_shape({&e.out, "out"}, e.x.dims, e.x.shape);
    if (e.out.library != nullptr) mark_written(out);
  }
  samebits_evaluate_options options = options_of(function_rule, packed_rule, random, parameter);
  const slices s = e.all();
  const std::uint64_t first = options.random.offset;
  const samebits_executor where = c::executor_of(threads, backend, stream, e.x, e.x.size());
  c::run(e.x.size(), [&] {
    std::int32_t status = SAMEBITS_OK;
    s.for_each([&](const std::int64_t* offsets, std::int64_t flat) {
      if (status != SAMEBITS_OK) return;
      options.random.offset = first + static_cast<std::uint64_t>(flat);
      status = evaluate_slice(e, f, s, offsets, options, where);
    });
    return status;
  });
  return result;
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
  const cast_rule how = rule_of(packed_rule);
  evaluate_options options = {.rule = static_cast<samebits::function_rule>(function_rule),
                              .round = how.round,
                              .on_overflow = how.on_overflow,
                              .random = random_of(random)};
  if (!parameter.is_none()) options.parameter = nb::cast<double>(parameter);
  const auto function = static_cast<samebits::function>(f);
  const executor where = in.on(threads, backend, stream);
  const auto call = [&] {
    if (grad) {
      evaluate_gradient(function, grad->get(), in.get(), results.get(), options, where);
    } else {
      samebits::evaluate(function, in.get(), results.get(), options, where);
    }
  };
  run(in.elements(), call, {{"in", "x"}});
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
