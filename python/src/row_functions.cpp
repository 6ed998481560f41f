// Functions of rows: softmax, log_softmax, LayerNorm, RMSNorm and their gradients.
#include "samebits/row_functions.hpp"

#include "call_arrays.hpp"

namespace samebits::python {
namespace {

nb::object softmax(bool logarithm, nb::handle x, nb::handle how, nb::handle format, nb::handle out,
                   nb::handle where) {
  const call_arrays a(x, "x", where, format);
  const output to = a.result(out);
  const auto options = options_of<softmax_options>(how);
  auto* const call = logarithm ? &log_softmax : &samebits::softmax;
  return a.compute(
      to, [&](const matrix_view& y, const executor& on) { call(a.first.view, y, options, on); });
}

nb::object softmax_gradient(bool logarithm, nb::handle grad, nb::handle result, nb::handle how,
                            nb::handle format, nb::handle out, nb::handle where) {
  if (result.is_none()) raise_type("result: an array is expected; got a NoneType");
  const call_arrays a(grad, "grad", where, format);
  const viewed of_result = a.beside(result, "result");
  const output to = a.result(out);
  const auto options = options_of<softmax_options>(how);
  auto* const call = logarithm ? &log_softmax_gradient : &samebits::softmax_gradient;
  return a.compute(to, [&](const matrix_view& y, const executor& on) {
    call(a.first.view, of_result.view, y, options, on);
  });
}

// An array of one axis, [cols], beside the rows; None is allowed.
viewed row_vector(nb::handle x, const char* name, const call_arrays& rows) {
  viewed v = rows.operand(x, name, rows.first.a.format);
  if (!x.is_none()) check_shape({&v.a, name}, 1, &rows.first.view.cols);
  return v;
}

viewed row_numbers(nb::handle x, const char* name, const call_arrays& rows) {
  viewed v(x, {.name = name, .stream = rows.stream});
  std::int64_t sizes[max_dims];
  const int dims = rows.column_shape(sizes);
  check_shape({&v.a, name}, dims, sizes);
  return v;
}

// LayerNorm or RMSNorm: out, then mean of LayerNorm, and rstd.
nb::tuple norm(bool rms, nb::handle x, nb::handle weight, nb::handle bias, nb::handle how,
               nb::handle format, nb::handle out, nb::handle where) {
  const auto options = options_of<layer_norm_options>(how);
  const call_arrays a(x, "x", where, format);
  const output to = a.result(out);
  const viewed weights = row_vector(weight, "weight", a), biases = row_vector(bias, "bias", a);
  const output mean = rms ? output{} : a.new_column(), rstd = a.new_column();
  const nb::object y = a.compute(to, [&](const matrix_view& view, const executor& on) {
    if (rms) return rms_norm(a.first.view, weights.view, view, a.column(rstd), options, on);
    layer_norm(a.first.view, weights.view, biases.view, view, a.column(mean), a.column(rstd),
               options, on);
  });
  return rms ? nb::make_tuple(y, rstd.object) : nb::make_tuple(y, mean.object, rstd.object);
}

// The gradient of LayerNorm, or of RMSNorm if there is no mean.
nb::object norm_gradient(nb::handle grad, nb::handle x, nb::handle mean, nb::handle rstd,
                         nb::handle weight, nb::handle how, nb::handle format, nb::handle out,
                         nb::handle where) {
  if (x.is_none()) raise_type("x: an array is expected; got a NoneType");
  const bool rms = mean.is_none();
  const call_arrays a(grad, "grad", where, format);
  const viewed in = a.beside(x, "x");
  const output to = a.result(out);
  const viewed means = rms ? viewed{} : row_numbers(mean, "mean", a),
               rstds = row_numbers(rstd, "rstd", a), weights = row_vector(weight, "weight", a);
  const auto options = options_of<layer_norm_options>(how);
  return a.compute(to, [&](const matrix_view& y, const executor& on) {
    if (rms) {
      return rms_norm_gradient(a.first.view, in.view, rstds.view, weights.view, y, options, on);
    }
    layer_norm_gradient(a.first.view, in.view, means.view, rstds.view, weights.view, y, options,
                        on);
  });
}

}  // namespace

void bind_row_functions(nb::module_& m) {
  def(m, "softmax", &softmax, "Returns softmax or its logarithm over the last axis.");
  def(m, "softmax_gradient", &softmax_gradient,
      "Returns the gradient of softmax or of its logarithm.");
  def(m, "norm", &norm, "Returns LayerNorm or RMSNorm over the last axis, means and rstds.");
  def(m, "norm_gradient", &norm_gradient,
      "Returns the gradient of the argument of LayerNorm or RMSNorm.");
}

}  // namespace samebits::python
