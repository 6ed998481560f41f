// Losses, gradients of parameters, and norms of lists, by PyTorch's rules.
#include "call.hpp"
#include "samebits/axis_reductions.hpp"
#include "samebits/cross_entropy.hpp"
#include "samebits/operators.hpp"
#include "samebits/parameter_gradients.hpp"
#include "tensor_list.hpp"

namespace samebits::python {
namespace {

// An array beside the first one, in its format; None is allowed.
viewed beside(nb::handle x, const char* name, format_id format, void* stream) {
  return x.is_none() ? viewed{} : viewed(x, {.name = name, .format = format, .stream = stream});
}

nb::tuple norm_parameter_gradients(nb::handle grad, nb::handle x, nb::handle mean, nb::handle rstd,
                                   nb::handle how, nb::handle format, nb::handle where) {
  void* const stream = stream_in(where);
  const viewed g(grad, {.name = "grad", .format = format_of(format), .stream = stream});
  const viewed in = beside(x, "x", g.a.format, stream);
  const viewed means = beside(mean, "mean", format_id::fp32, stream);
  const viewed rstds = beside(rstd, "rstd", format_id::fp32, stream);
  const auto options = options_of<norm_parameter_options>(how);
  const auto new_gradient = [&] { return new_output(grad, g.a, 1, &g.view.cols, g.a.format); };
  const output weight = new_gradient();
  const output bias = mean.is_none() ? output{} : new_gradient();
  const matrix_view to_weight = view_of({&weight.a, "weight"});
  const matrix_view to_bias = mean.is_none() ? matrix_view{} : view_of({&bias.a, "bias"});
  const executor on = executor_of(where, g.a, g.a.size());
  run(g.a.size(),
      [&] {
        samebits::norm_parameter_gradients(g.view, in.view, means.view, rstds.view, to_weight,
                                           to_bias, options, on);
      },
      {{"in", "x"}});
  return nb::make_tuple(weight.object, mean.is_none() ? nb::none() : bias.object);
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
  void* const stream = stream_in(where);
  const viewed g(grad, {.name = "grad", .format = format_of(format), .stream = stream});
  const target_classes rows(indices, "indices", stream);
  const auto options = options_of<embedding_options>(how);
  const std::int64_t shape[] = {words, g.view.cols};
  const output out = new_output(grad, g.a, 2, shape, g.a.format);
  const matrix_view view = view_of({&out.a, "out"});
  const executor on = executor_of(where, g.a, g.a.size());
  run(g.a.size(), [&] { samebits::embedding_gradient(g.view, rows.all, view, options, on); });
  return out.object;
}

// `to`: the format of the loss, or None for that of x.
nb::object cross_entropy(nb::handle x, nb::handle targets, nb::handle how, nb::handle to,
                         nb::handle format, nb::handle where) {
  void* const stream = stream_in(where);
  const viewed in(x, {.name = "x", .format = format_of(format), .stream = stream});
  const target_classes rows(targets, "targets", stream);
  const auto options = options_of<cross_entropy_options>(how);
  const bool one = options.reduction != loss_reduction::none;
  const output out =
      new_output(x, in.a, one ? 0 : 1, &in.view.rows, format_of(to, "to").value_or(in.a.format));
  const matrix_view loss = view_of({&out.a, "loss"});
  const executor on = executor_of(where, in.a, in.a.size());
  run(in.a.size(), [&] { samebits::cross_entropy(in.view, rows.all, loss, options, on); },
      {{"in", "x"}});
  return out.object;
}

// The gradient, or with `both` the loss and the gradient. `known`: None, or the gradient of the loss,
// its gradient of x, which is updated.
nb::object cross_entropy_gradient(bool both, nb::handle grad, nb::handle x, nb::handle targets,
                                  nb::handle how, nb::handle to, nb::handle known,
                                  nb::handle format, nb::handle where) {
  void* const stream = stream_in(where);
  const viewed in(x, {.name = "x", .format = format_of(format), .stream = stream});
  const format_id of_loss = format_of(to, "to").value_or(in.a.format);
  const viewed g(grad, {.name = "grad", .format = of_loss, .stream = stream});
  const target_classes rows(targets, "targets", stream);
  auto options = options_of<cross_entropy_options>(how);
  viewed before;
  if (!known.is_none()) {
    before = viewed(nb::handle(known[0]), {.name = "known", .format = of_loss, .stream = stream});
    options.known_grad = before.view;
  }
  const output out =
      output_like(x, in.a, in.a.format,
                  known.is_none() ? nb::object(nb::none()) : nb::object(known[1]), stream);
  const matrix_view view = view_of({&out.a, "out"});
  const output loss = both ? new_output(x, in.a, g.a.dims, g.a.shape, of_loss) : output{};
  const matrix_view losses = both ? view_of({&loss.a, "loss"}) : matrix_view{};
  const executor on = executor_of(where, in.a, in.a.size());
  const auto call = [&] {
    if (both) {
      cross_entropy_and_gradient(g.view, in.view, rows.all, losses, view, options, on);
    } else {
      samebits::cross_entropy_gradient(g.view, in.view, rows.all, view, options, on);
    }
  };
  run(in.a.size(), call, {{"in", "x"}, {"known_grad", "known"}});
  if (!both) return out.object;
  return nb::make_tuple(loss.object, out.object);
}

// Rows of a table, [indices, cols]; `positions` may be None.
nb::object embed(nb::handle indices, nb::handle table, nb::handle positions, double scale,
                 nb::handle rule, nb::handle where) {
  void* const stream = stream_in(where);
  const viewed words(table, {.name = "table", .stream = stream});
  const viewed added = beside(positions, "positions", words.a.format, stream);
  const target_classes rows(indices, "indices", stream);
  const embed_options options{enumerator_of<function_rule>(rule, "rule"), scale};
  const std::int64_t shape[] = {static_cast<std::int64_t>(rows.all.size()), words.view.cols};
  const output out = new_output(table, words.a, 2, shape, words.a.format);
  const matrix_view view = view_of({&out.a, "out"});
  const executor on = executor_of(where, words.a, shape[0] * shape[1]);
  run(shape[0] * shape[1],
      [&] { samebits::embed(rows.all, words.view, added.view, view, options, on); });
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
