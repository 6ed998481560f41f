// Fused operators, for samebits.torch: gated and biased functions, rotary embeddings, norms of
// sums, dropout. Their arguments are in the order of torch.ops.samebits.
#include "samebits/operators.hpp"

#include "call_arrays.hpp"

namespace samebits::python {
namespace {

constexpr auto torchs_rule = function_rule::torch_2_11;

// f(gate) * up.
nb::object gated(nb::handle gate, nb::handle up, nb::handle name) {
  const auto f = enumerator_of<function>(name, "function");
  const call_arrays a(gate, "gate");
  const viewed second = a.beside(up, "up");
  return a.compute([&](const matrix_view& y, const executor& on) {
    samebits::gated(f, a.first.view, second.view, y, torchs_rule, on);
  });
}

// The gradients of gate and up, into of_gate and of_up.
void gated_gradient(nb::handle grad, nb::handle gate, nb::handle up, nb::handle name,
                    nb::handle of_gate, nb::handle of_up) {
  const auto f = enumerator_of<function>(name, "function");
  const call_arrays a(grad, "grad");
  const viewed first = a.beside(gate, "gate"), second = a.beside(up, "up");
  const output to_gate = a.result(of_gate), to_up = a.result(of_up);
  const matrix_view y = view_of(to_gate, "of_gate"), z = view_of(to_up, "of_up");
  a.run([&](const executor& on) {
    samebits::gated_gradient(f, a.first.view, first.view, second.view, y, z, torchs_rule, on);
  });
}

// f(x + bias), or with `grad` the gradient of x + bias.
nb::object biased(nb::handle grad, nb::handle x, nb::handle bias, nb::handle name) {
  const auto f = enumerator_of<function>(name, "function");
  const call_arrays a(x, "x");
  const viewed row = a.operand(bias, "bias"), grads = a.beside(grad, "grad");
  return a.compute([&](const matrix_view& y, const executor& on) {
    if (grad.is_none()) return samebits::biased(f, a.first.view, row.view, y, torchs_rule, on);
    biased_gradient(f, grads.view, a.first.view, row.view, y, torchs_rule, on);
  });
}

// The rotary embedding of x, or the gradient of its argument.
template <auto call>
nb::object rotate(nb::handle x, nb::handle cos, nb::handle sin, std::int64_t each) {
  const call_arrays a(x, "x");
  const viewed c = a.operand(cos, "cos"), s = a.operand(sin, "sin");
  return a.compute([&](const matrix_view& y, const executor& on) {
    call(a.first.view, c.view, s.view, y, rotate_options{torchs_rule, each}, on);
  });
}

// The nearest of 2^bits - 1 numbers from -clip to clip.
nb::object clip_fake_quantize(nb::handle x, nb::handle clip, int bits) {
  const call_arrays a(x, "x");
  const viewed c = a.operand(clip, "clip");
  return a.compute([&](const matrix_view& y, const executor& on) {
    samebits::clip_fake_quantize(a.first.view, c.view, y, {bits}, on);
  });
}

// The gradient of x, and what each element adds to that of the clip.
nb::tuple clip_fake_quantize_gradient(nb::handle grad, nb::handle x, nb::handle clip, int bits) {
  const call_arrays a(grad, "grad");
  const viewed in = a.beside(x, "x"), c = a.operand(clip, "clip");
  const output of_x = a.result(), of_clip = a.result();
  const matrix_view y = view_of(of_x, "of_in"), z = view_of(of_clip, "of_clip");
  a.run([&](const executor& on) {
    samebits::clip_fake_quantize_gradient(a.first.view, in.view, c.view, y, z, {bits}, on);
  });
  return nb::make_tuple(of_x.object, of_clip.object);
}

// Softmax of masked scores, or with its `result` the gradient of its argument `x`. `rows`: heads,
// queries, and the steps of the mask. Booleans come as bytes.
nb::object scaled_softmax(nb::handle x, nb::handle result, double scale, bool causal,
                          nb::handle mask, bool is_boolean, nb::handle rows, nb::handle out) {
  scaled_softmax_options options{torchs_rule, scale, causal};
  options.heads = nb::cast<std::int64_t>(item(rows, 0));
  options.queries = nb::cast<std::int64_t>(item(rows, 1));
  for (int i = 0; i < 3; ++i) options.mask_steps[i] = nb::cast<std::int64_t>(item(rows, 2 + i));
  const call_arrays a(x, result.is_none() ? "x" : "grad");
  const viewed of_result = a.beside(result, "result");
  const auto format = is_boolean ? std::optional(format_id::e8m0) : std::nullopt;
  const viewed masks = a.operand(mask, "mask", format);
  options.mask = masks.view;
  return a.compute(a.result(out), [&](const matrix_view& y, const executor& on) {
    if (result.is_none()) return samebits::scaled_softmax(a.first.view, y, options, on);
    scaled_softmax_gradient(a.first.view, of_result.view, y, options, on);
  });
}

nb::object dropout(nb::handle x, double probability, std::uint64_t seed, std::uint64_t stream,
                   std::uint64_t offset) {
  dropout_options options{.probability = probability};
  options.random.seed = seed;
  options.random.stream = stream;
  options.random.offset = offset;
  const call_arrays a(x, "x");
  return a.compute([&](const matrix_view& y, const executor& on) {
    samebits::dropout(a.first.view, y, options, on);
  });
}

// LayerNorm or RMSNorm of x + added: out, the sum, mean of LayerNorm, and rstd.
nb::tuple norm_of_sum(bool rms, nb::handle x, nb::handle added, nb::handle weight, nb::handle bias,
                      nb::handle how) {
  const auto options = options_of<layer_norm_options>(how);
  const call_arrays a(x, "x");
  const viewed second = a.beside(added, "added"), weights = a.operand(weight, "weight"),
               biases = a.operand(bias, "bias");
  const output sum = a.result(), mean = rms ? output{} : a.new_column(), rstd = a.new_column();
  const matrix_view h = view_of(sum, "sum");
  const nb::object out = a.compute([&](const matrix_view& y, const executor& on) {
    if (rms) {
      return add_rms_norm(a.first.view, second.view, weights.view, h, y, a.column(rstd), options,
                          on);
    }
    add_layer_norm(a.first.view, second.view, weights.view, biases.view, h, y, a.column(mean),
                   a.column(rstd), options, on);
  });
  return rms ? nb::make_tuple(out, sum.object, rstd.object)
             : nb::make_tuple(out, sum.object, mean.object, rstd.object);
}

// The gradient of the sum; of RMSNorm if there is no mean.
nb::object norm_of_sum_gradient(nb::handle grad, nb::handle of_sum, nb::handle sum, nb::handle mean,
                                nb::handle rstd, nb::handle weight, nb::handle how) {
  const auto options = options_of<layer_norm_options>(how);
  const call_arrays a(grad, "grad");
  const viewed added = a.beside(of_sum, "of_sum"), h = a.beside(sum, "sum"),
               means = a.operand(mean, "mean"), rstds = a.operand(rstd, "rstd"),
               weights = a.operand(weight, "weight");
  return a.compute([&](const matrix_view& y, const executor& on) {
    if (mean.is_none()) {
      return add_rms_norm_gradient(a.first.view, added.view, h.view, rstds.view, weights.view, y,
                                   options, on);
    }
    add_layer_norm_gradient(a.first.view, added.view, h.view, means.view, rstds.view, weights.view,
                            y, options, on);
  });
}

}  // namespace

void bind_operators(nb::module_& m) {
  def(m, "gated", &gated, "Returns f(gate) * up.");
  def(m, "gated_gradient", &gated_gradient, "Computes the gradients of gate and up.");
  def(m, "biased", &biased, "Returns f(x + bias), or the gradient of x + bias.");
  def(m, "rotate", &rotate<&samebits::rotate>, "Returns a rotary embedding.");
  def(m, "rotate_gradient", &rotate<&samebits::rotate_gradient>,
      "Returns the gradient of a rotary embedding's argument.");
  def(m, "norm_of_sum", &norm_of_sum, "Returns a norm of x + added, and x + added.");
  def(m, "norm_of_sum_gradient", &norm_of_sum_gradient, "Returns the gradient of x + added.");
  def(m, "clip_fake_quantize", &clip_fake_quantize, "Returns fake quantization to integers.");
  def(m, "clip_fake_quantize_gradient", &clip_fake_quantize_gradient, "Returns its gradients.");
  def(m, "scaled_softmax", &scaled_softmax, "Returns softmax of scores, or the gradient of these.");
  def(m, "dropout", &dropout, "Returns dropout by element index.");
}

}  // namespace samebits::python
