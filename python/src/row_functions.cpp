// Functions of rows: softmax, log_softmax, LayerNorm, RMSNorm and their gradients.
#include "samebits/row_functions.hpp"

#include "call.hpp"

namespace samebits::python {
namespace {

// The arrays of one call that have rows. All have the shape and format of the first one.
struct row_arrays {
  void* stream;
  viewed first;
  viewed second;
  output out;
  matrix_view out_view;

  row_arrays(nb::handle x, const char* x_name, nb::handle y, const char* y_name, nb::handle given,
             nb::handle format, nb::handle where)
      : stream(stream_in(where)),
        first(x, {.name = x_name, .format = format_of(format), .stream = stream}) {
    if (!y.is_none()) {
      second = viewed(y, {.name = y_name, .format = format_of(format), .stream = stream});
      check_shape({&second.a, y_name}, first.a.dims, first.a.shape);
    }
    out = output_like(x, first.a, first.a.format, given, stream);
    out_view = view_of({&out.a, "out"});
  }
  [[nodiscard]] executor on(nb::handle where) const {
    return executor_of(where, first.a, first.a.size());
  }
  // Calls the library on rows.
  template <class Call>
  void run(const Call& call) const {
    python::run(first.a.size(), call, {{"in", "x"}});
  }
};

nb::object softmax(bool logarithm, nb::handle x, nb::handle how, nb::handle format, nb::handle out,
                   nb::handle where) {
  const row_arrays a(x, "x", nb::none(), "", out, format, where);
  const auto options = options_of<softmax_options>(how);
  const executor on = a.on(where);
  auto* const call = logarithm ? &log_softmax : &samebits::softmax;
  a.run([&] { call(a.first.view, a.out_view, options, on); });
  return a.out.object;
}

nb::object softmax_gradient(bool logarithm, nb::handle grad, nb::handle result, nb::handle how,
                            nb::handle format, nb::handle out, nb::handle where) {
  if (result.is_none()) raise_type("result: an array is expected; got a NoneType");
  const row_arrays a(grad, "grad", result, "result", out, format, where);
  const auto options = options_of<softmax_options>(how);
  const executor on = a.on(where);
  auto* const call = logarithm ? &log_softmax_gradient : &samebits::softmax_gradient;
  a.run([&] { call(a.first.view, a.second.view, a.out_view, options, on); });
  return a.out.object;
}

// An array of one axis, [cols], beside the rows; None is allowed.
viewed row_vector(nb::handle x, const char* name, const row_arrays& rows) {
  if (x.is_none()) return {};
  viewed v(x, {.name = name, .format = rows.first.a.format, .stream = rows.stream});
  check_shape({&v.a, name}, 1, &rows.first.view.cols);
  return v;
}

// The shape of the rows with a last axis of 1: that of fp32 arrays with one number per row.
struct column_shape {
  int dims;
  std::int64_t sizes[max_dims];

  explicit column_shape(const array& rows) : dims(rows.dims) {
    for (int i = 0; i < dims; ++i) sizes[i] = rows.shape[i];
    if (dims > 0) sizes[dims - 1] = 1;
  }
};

viewed row_numbers(nb::handle x, const char* name, const row_arrays& rows) {
  viewed v(x, {.name = name, .stream = rows.stream});
  const column_shape shape(rows.first.a);
  check_shape({&v.a, name}, shape.dims, shape.sizes);
  return v;
}

// LayerNorm or RMSNorm: out, then mean of LayerNorm, and rstd.
nb::tuple norm(bool rms, nb::handle x, nb::handle weight, nb::handle bias, nb::handle how,
               nb::handle format, nb::handle out, nb::handle where) {
  const auto options = options_of<layer_norm_options>(how);
  const row_arrays a(x, "x", nb::none(), "", out, format, where);
  const viewed weights = row_vector(weight, "weight", a);
  const viewed biases = row_vector(bias, "bias", a);
  const column_shape shape(a.first.a);
  const auto new_column = [&] {
    return new_output(x, a.first.a, shape.dims, shape.sizes, format_id::fp32);
  };
  const output mean = rms ? output{} : new_column();
  const output rstd = new_column();
  const auto column = [&](const output& o) {
    return matrix_view{o.a.data, o.a.format, a.first.view.rows, 1, 1, 1, o.a.memory};
  };
  const executor on = a.on(where);
  a.run([&] {
    if (rms) {
      samebits::rms_norm(a.first.view, weights.view, a.out_view, column(rstd), options, on);
    } else {
      samebits::layer_norm(a.first.view, weights.view, biases.view, a.out_view, column(mean),
                           column(rstd), options, on);
    }
  });
  return rms ? nb::make_tuple(a.out.object, rstd.object)
             : nb::make_tuple(a.out.object, mean.object, rstd.object);
}

// The gradient of LayerNorm, or of RMSNorm if there is no mean.
nb::object norm_gradient(nb::handle grad, nb::handle x, nb::handle mean, nb::handle rstd,
                         nb::handle weight, nb::handle how, nb::handle format, nb::handle out,
                         nb::handle where) {
  if (x.is_none()) raise_type("x: an array is expected; got a NoneType");
  const bool rms = mean.is_none();
  const row_arrays a(grad, "grad", x, "x", out, format, where);
  const viewed means = rms ? viewed{} : row_numbers(mean, "mean", a);
  const viewed rstds = row_numbers(rstd, "rstd", a);
  const viewed weights = row_vector(weight, "weight", a);
  const auto options = options_of<layer_norm_options>(how);
  const executor on = a.on(where);
  a.run([&] {
    if (rms) {
      samebits::rms_norm_gradient(a.first.view, a.second.view, rstds.view, weights.view, a.out_view,
                                  options, on);
    } else {
      samebits::layer_norm_gradient(a.first.view, a.second.view, means.view, rstds.view,
                                    weights.view, a.out_view, options, on);
    }
  });
  return a.out.object;
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
