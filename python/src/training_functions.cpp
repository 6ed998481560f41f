// Losses, gradients of parameters, and norms of lists, by PyTorch's rules.
#include "call_arrays.hpp"
#include "samebits/axis_reductions.hpp"
#include "samebits/cross_entropy.hpp"
#include "samebits/operators.hpp"
#include "samebits/parameter_gradients.hpp"
#include "tensor_list.hpp"

namespace samebits::python {
namespace {

nb::tuple norm_parameter_gradients(nb::handle grad, nb::handle x, nb::handle mean, nb::handle rstd,
                                   nb::handle how, nb::handle format, nb::handle where) {
  const call_arrays a(grad, "grad", where, format);
  const viewed in = a.operand(x, "x", a.first.a.format),
               means = a.operand(mean, "mean", format_id::fp32),
               rstds = a.operand(rstd, "rstd", format_id::fp32);
  const auto options = options_of<norm_parameter_options>(how);
  const auto new_gradient = [&] {
    return new_output(grad, a.first.a, 1, &a.first.view.cols, a.first.a.format);
  };
  const output weight = new_gradient(), bias = mean.is_none() ? output{} : new_gradient();
  const matrix_view to_weight = view_of(weight, "weight");
  const matrix_view to_bias = mean.is_none() ? matrix_view{} : view_of(bias, "bias");
  a.run([&](const executor& on) {
    samebits::norm_parameter_gradients(a.first.view, in.view, means.view, rstds.view, to_weight,
                                       to_bias, options, on);
  });
  return nb::make_tuple(weight.object, object_of(bias));
}

// The classes or words of the rows: bytes of integers of 64 bits, or an array of them in device memory.
struct target_classes {
  std::vector<std::int64_t> numbers;
  viewed on_device;
  std::span<const std::int64_t> all;

  target_classes(nb::handle given, const char* name, void* stream) {
    if (PyBytes_Check(given.ptr())) {
      numbers = numbers_of<std::int64_t>(nb::borrow<nb::bytes>(given));
      all = numbers;
      return;
    }
    on_device = viewed(given, {.name = name, .stream = stream, .integers = true});
    const matrix_view& v = on_device.view;
    if (v.rows != 1 || (v.cols > 1 && v.col_stride != 1)) {
      raise_invalid(std::string(name) +
                    ": a contiguous array of one axis is expected in device memory");
    }
    all = {static_cast<const std::int64_t*>(v.data), static_cast<std::size_t>(v.cols)};
  }
};

nb::object embedding_gradient(nb::handle grad, nb::handle indices, std::int64_t words,
                              nb::handle how, nb::handle format, nb::handle where) {
  const call_arrays a(grad, "grad", where, format);
  const target_classes rows(indices, "indices", a.stream);
  const auto options = options_of<embedding_options>(how);
  const std::int64_t shape[] = {words, a.first.view.cols};
  const output out = new_output(grad, a.first.a, 2, shape, a.first.a.format);
  return a.compute(out, [&](const matrix_view& view, const executor& on) {
    samebits::embedding_gradient(a.first.view, rows.all, view, options, on);
  });
}

// `to`: the format of the loss, or None for that of x.
nb::object cross_entropy(nb::handle x, nb::handle targets, nb::handle how, nb::handle to,
                         nb::handle format, nb::handle where) {
  const call_arrays a(x, "x", where, format);
  const target_classes rows(targets, "targets", a.stream);
  const auto options = options_of<cross_entropy_options>(how);
  const bool one = options.reduction != loss_reduction::none;
  const output out = new_output(x, a.first.a, one ? 0 : 1, &a.first.view.rows,
                                format_of(to, "to").value_or(a.first.a.format));
  return a.compute(out, [&](const matrix_view& loss, const executor& on) {
    samebits::cross_entropy(a.first.view, rows.all, loss, options, on);
  });
}

// The gradient, or with `both` the loss and the gradient. `known`: None, or the gradient of the loss,
// its gradient of x, which is updated.
nb::object cross_entropy_gradient(bool both, nb::handle grad, nb::handle x, nb::handle targets,
                                  nb::handle how, nb::handle to, nb::handle known,
                                  nb::handle format, nb::handle where) {
  const call_arrays a(x, "x", where, format);
  const format_id of_loss = format_of(to, "to").value_or(a.first.a.format);
  const viewed g(grad, {.name = "grad", .format = of_loss, .stream = a.stream});
  const target_classes rows(targets, "targets", a.stream);
  auto options = options_of<cross_entropy_options>(how);
  nb::object before = nb::none(), into = nb::none();
  if (!known.is_none()) {
    before = known[0];
    into = known[1];
  }
  const viewed known_grad = a.operand(before, "known", of_loss);
  options.known_grad = known_grad.view;
  const output out = a.result(into);
  const output loss = both ? new_output(x, a.first.a, g.a.dims, g.a.shape, of_loss) : output{};
  const matrix_view losses = both ? view_of(loss, "loss") : matrix_view{};
  const nb::object gradient = a.compute(out, [&](const matrix_view& view, const executor& on) {
    if (both) {
      return cross_entropy_and_gradient(g.view, a.first.view, rows.all, losses, view, options, on);
    }
    samebits::cross_entropy_gradient(g.view, a.first.view, rows.all, view, options, on);
  });
  return both ? nb::make_tuple(loss.object, gradient) : gradient;
}

// Rows of a table, [indices, cols]; `positions` may be None.
nb::object embed(nb::handle indices, nb::handle table, nb::handle positions, double scale) {
  const call_arrays a(table, "table");
  const viewed added = a.operand(positions, "positions", a.first.a.format);
  const target_classes rows(indices, "indices", a.stream);
  const embed_options options{function_rule::torch_2_11, scale};
  const std::int64_t shape[] = {static_cast<std::int64_t>(rows.all.size()), a.first.view.cols};
  const output out = new_output(table, a.first.a, 2, shape, a.first.a.format);
  const matrix_view view = view_of(out, "out");
  a.run(shape[0] * shape[1], [&](const executor& on) {
    samebits::embed(rows.all, a.first.view, added.view, view, options, on);
  });
  return out.object;
}

// `arrays` is not empty; `names` has the name of each.
nb::object foreach_norm(nb::list arrays, nb::list names, nb::handle rule, nb::handle format,
                        nb::handle where) {
  const listed_arrays list(arrays, names, "tensors", access::read, format, where);
  const auto count = static_cast<std::int64_t>(list.get().size());
  const array first = array_of(arrays[0], {.name = "tensors", .format = format_of(format)});
  const output out = new_output(arrays[0], first, 1, &count, first.format);
  const matrix_view norms = view_of({&out.a, "norms"});
  const auto by = enumerator_of<function_rule>(rule, "rule");
  run(list.elements(), [&] { samebits::foreach_norm(list.get(), norms, by, list.on()); });
  return out.object;
}

double clip_grad_norm(nb::list arrays, nb::list names, double max_norm, nb::handle rule,
                      nb::handle format, nb::handle where) {
  const listed_arrays list(arrays, names, "gradients", access::write, format, where);
  const auto by = enumerator_of<function_rule>(rule, "rule");
  float norm = 0;
  run_to_end(list.elements(),
             [&] { norm = samebits::clip_grad_norm(list.get(), max_norm, by, list.on()); });
  return norm;
}

}  // namespace

void bind_training_functions(nb::module_& m) {
  def(m, "norm_parameter_gradients", &norm_parameter_gradients,
      "Returns the gradients of a norm's weight and bias.");
  def(m, "embed", &embed, "Returns rows of a table, scaled, and rows of positions added.");
  def(m, "embedding_gradient", &embedding_gradient, "Returns the gradient of an embedding.");
  def(m, "cross_entropy", &cross_entropy, "Returns the cross entropy of logits.");
  def(m, "cross_entropy_gradient", &cross_entropy_gradient,
      "Returns the gradient of the logits of a cross entropy, or that and the loss.");
  def(m, "foreach_norm", &foreach_norm, "Returns the norms of a list's arrays.");
  def(m, "clip_grad_norm", &clip_grad_norm, "Clips a list's arrays; returns their norm.");
}

}  // namespace samebits::python
