// Fused operators, for samebits.torch: gated and biased functions, rotary embeddings, dropout.
#include "samebits/operators.hpp"

#include "call.hpp"

namespace samebits::python {
namespace {

// The arrays of one call: operands in the shape and format of the first one, and results, given or
// new.
struct fused_arrays {
  nb::handle like;
  void* stream;
  viewed first;

  fused_arrays(nb::handle x, const char* name, nb::handle where)
      : like(x), stream(stream_in(where)), first(x, {.name = name, .stream = stream}) {}

  [[nodiscard]] viewed beside(nb::handle x, const char* name) const {
    viewed v(x, {.name = name, .stream = stream});
    check_shape({&v.a, name}, first.a.dims, first.a.shape);
    return v;
  }
  // An operand of any number of rows.
  [[nodiscard]] viewed rows(nb::handle x, const char* name) const {
    return viewed(x, {.name = name, .stream = stream});
  }
  [[nodiscard]] output result(nb::handle given) const {
    return output_like(like, first.a, first.a.format, given, stream);
  }
  template <class Call>
  void run(nb::handle where, const Call& call) const {
    const executor on = executor_of(where, first.a, first.a.size());
    python::run(first.a.size(), [&] { call(on); }, {{"in", "x"}});
  }
};

matrix_view view_of_output(const output& o, const char* name) { return view_of({&o.a, name}); }

// f(gate) * up.
nb::object gated(nb::handle name, nb::handle gate, nb::handle up, nb::handle rule,
                 nb::handle where) {
  const auto f = enumerator_of<function>(name, "function");
  const auto by = enumerator_of<function_rule>(rule, "rule");
  const fused_arrays a(gate, "gate", where);
  const viewed second = a.beside(up, "up");
  const output out = a.result(nb::none());
  const matrix_view y = view_of_output(out, "out");
  a.run(where,
        [&](const executor& on) { samebits::gated(f, a.first.view, second.view, y, by, on); });
  return out.object;
}

// The gradients of gate and up, into of_gate and of_up.
void gated_gradient(nb::handle name, nb::handle grad, nb::handle gate, nb::handle up,
                    nb::handle of_gate, nb::handle of_up, nb::handle rule, nb::handle where) {
  const auto f = enumerator_of<function>(name, "function");
  const auto by = enumerator_of<function_rule>(rule, "rule");
  const fused_arrays a(grad, "grad", where);
  const viewed first = a.beside(gate, "gate"), second = a.beside(up, "up");
  const output to_gate = a.result(of_gate), to_up = a.result(of_up);
  const matrix_view y = view_of_output(to_gate, "of_gate"), z = view_of_output(to_up, "of_up");
  a.run(where, [&](const executor& on) {
    samebits::gated_gradient(f, a.first.view, first.view, second.view, y, z, by, on);
  });
}

// f(x + bias), or with `grad` the gradient of x + bias.
nb::object biased(nb::handle name, nb::handle grad, nb::handle x, nb::handle bias, nb::handle rule,
                  nb::handle where) {
  const auto f = enumerator_of<function>(name, "function");
  const auto by = enumerator_of<function_rule>(rule, "rule");
  const fused_arrays a(x, "x", where);
  const viewed row = a.rows(bias, "bias");
  const viewed grads = grad.is_none() ? viewed{} : a.beside(grad, "grad");
  const output out = a.result(nb::none());
  const matrix_view y = view_of_output(out, "out");
  a.run(where, [&](const executor& on) {
    if (grad.is_none()) return samebits::biased(f, a.first.view, row.view, y, by, on);
    samebits::biased_gradient(f, grads.view, a.first.view, row.view, y, by, on);
  });
  return out.object;
}

// The rotary embedding of x, or the gradient of its argument.
nb::object rotate(bool gradient, nb::handle x, nb::handle cos, nb::handle sin, std::int64_t each,
                  nb::handle rule, nb::handle where) {
  const rotate_options options{enumerator_of<function_rule>(rule, "rule"), each};
  const fused_arrays a(x, "x", where);
  const viewed c = a.rows(cos, "cos"), s = a.rows(sin, "sin");
  const output out = a.result(nb::none());
  const matrix_view y = view_of_output(out, "out");
  const auto call = gradient ? &samebits::rotate_gradient : &samebits::rotate;
  a.run(where, [&](const executor& on) { call(a.first.view, c.view, s.view, y, options, on); });
  return out.object;
}

nb::object dropout(nb::handle x, double probability, std::uint64_t seed, std::uint64_t stream,
                   std::uint64_t offset, nb::handle where) {
  dropout_options options{.probability = probability};
  options.random.seed = seed;
  options.random.stream = stream;
  options.random.offset = offset;
  const fused_arrays a(x, "x", where);
  const output out = a.result(nb::none());
  const matrix_view y = view_of_output(out, "out");
  a.run(where, [&](const executor& on) { samebits::dropout(a.first.view, y, options, on); });
  return out.object;
}

}  // namespace

void bind_operators(nb::module_& m) {
  def(m, "gated", &gated, "Returns f(gate) * up.");
  def(m, "gated_gradient", &gated_gradient, "Computes the gradients of gate and up.");
  def(m, "biased", &biased, "Returns f(x + bias), or the gradient of x + bias.");
  def(m, "rotate", &rotate, "Returns a rotary embedding, or the gradient of its argument.");
  def(m, "dropout", &dropout, "Returns dropout by element index.");
}

}  // namespace samebits::python
