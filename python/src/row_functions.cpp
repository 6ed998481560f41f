// Functions of rows: softmax, log_softmax, LayerNorm and their gradients.
#include "c_call.hpp"

namespace samebits::python {
namespace {

// The arrays of one call that have rows. All have the shape and format of the first one.
struct row_arrays {
  array first;
  array second;
  array out;
  nb::object result;
  samebits_view first_view = {};
  samebits_view second_view = {};
  samebits_view out_view = {};

  row_arrays(nb::handle x, const char* x_name, nb::handle y, const char* y_name, nb::handle given,
             int format) {
    first = array_of(x, {.name = x_name, .format = format_of(format)});
    first_view = c::view_of({&first, x_name});
    if (!y.is_none()) {
      second = array_of(y, {.name = y_name, .format = format_of(format)});
      check_shape({&second, y_name}, first.dims, first.shape);
      second_view = c::view_of({&second, y_name});
    }
    if (given.is_none()) {
      output fresh = new_output(x, first, first.format);
      result = std::move(fresh.object);
      out = std::move(fresh.a);
    } else {
      result = nb::borrow(given);
      out = array_of(given, {.name = "out", .needs = access::write, .format = first.format});
      check_shape({&out, "out"}, first.dims, first.shape);
      if (out.library != nullptr) mark_written(given);
    }
    out_view = c::view_of({&out, "out"});
  }
};

nb::object softmax(bool logarithm, int rule, nb::handle x, std::int64_t offset, int num_warps,
                   int elements_per_thread, int format, nb::handle out, nb::handle threads,
                   nb::handle backend) {
  const row_arrays a(x, "x", nb::none(), "", out, format);
  samebits_softmax_options options = SAMEBITS_SOFTMAX_OPTIONS_INIT;
  options.rule = rule;
  options.offset = offset;
  options.num_warps = num_warps;
  options.elements_per_thread = elements_per_thread;
  const samebits_executor where =
      c::executor_of(threads, backend, nb::none(), a.first, a.first.size());
  auto* const call = logarithm ? &samebits_log_softmax : &samebits_softmax;
  c::run(a.first.size(), [&] { return call(&a.first_view, &a.out_view, &options, &where); });
  return a.result;
}

nb::object softmax_gradient(bool logarithm, int rule, nb::handle grad, nb::handle result,
                            std::int64_t offset, int format, nb::handle out, nb::handle threads,
                            nb::handle backend) {
  const row_arrays a(grad, "grad", result, "result", out, format);
  samebits_softmax_options options = SAMEBITS_SOFTMAX_OPTIONS_INIT;
  options.rule = rule;
  options.offset = offset;
  const samebits_executor where =
      c::executor_of(threads, backend, nb::none(), a.first, a.first.size());
  auto* const call = logarithm ? &samebits_log_softmax_gradient : &samebits_softmax_gradient;
  c::run(a.first.size(),
         [&] { return call(&a.first_view, &a.second_view, &a.out_view, &options, &where); });
  return a.result;
}

// An array of one axis, [cols], beside the rows; None is allowed.
struct row_vector {
  array a;
  samebits_view view = {};
  bool present = false;

  row_vector(nb::handle x, const char* name, const row_arrays& rows) {
    if (x.is_none()) return;
    a = array_of(x, {.name = name, .format = rows.first.format});
    const std::int64_t cols = rows.first_view.cols;
    check_shape({&a, name}, 1, &cols);
    view = c::view_of({&a, name});
    present = true;
  }
  [[nodiscard]] const samebits_view* get() const { return present ? &view : nullptr; }
};

// An fp32 array with one number per row: the shape of the rows with a last axis of 1.
struct row_numbers {
  array a;
  nb::object object;
  samebits_view view = {};

  row_numbers(nb::handle like, const row_arrays& rows) {
    const shape of(rows);
    output fresh = new_output(like, rows.first, of.dims, of.sizes, format_id::fp32);
    object = std::move(fresh.object);
    a = std::move(fresh.a);
    view = as_column(rows);
  }
  row_numbers(nb::handle given, const char* name, const row_arrays& rows) {
    a = array_of(given, {.name = name});
    const shape of(rows);
    check_shape({&a, name}, of.dims, of.sizes);
    view = c::view_of({&a, name});
  }

 private:
  struct shape {
    int dims;
    std::int64_t sizes[max_dims];
    explicit shape(const row_arrays& rows) : dims(rows.first.dims) {
      for (int i = 0; i < dims; ++i) sizes[i] = rows.first.shape[i];
      if (dims > 0) sizes[dims - 1] = 1;
    }
  };
  [[nodiscard]] samebits_view as_column(const row_arrays& rows) const {
    return c::view_of(matrix_view{a.data, a.format, rows.first_view.rows, 1, 1, 1, a.memory});
  }
};

samebits_layer_norm_options layer_norm_options_of(int rule, double epsilon, std::int64_t offset) {
  samebits_layer_norm_options options = SAMEBITS_LAYER_NORM_OPTIONS_INIT;
  options.rule = rule;
  options.epsilon = epsilon;
  options.offset = offset;
  return options;
}

nb::tuple layer_norm(int rule, nb::handle x, nb::handle weight, nb::handle bias, double epsilon,
                     std::int64_t offset, int format, nb::handle out, nb::handle threads,
                     nb::handle backend) {
  const row_arrays a(x, "x", nb::none(), "", out, format);
  const row_vector weights(weight, "weight", a);
  const row_vector biases(bias, "bias", a);
  const row_numbers mean(x, a);
  const row_numbers rstd(x, a);
  const samebits_layer_norm_options options = layer_norm_options_of(rule, epsilon, offset);
  const samebits_executor where =
      c::executor_of(threads, backend, nb::none(), a.first, a.first.size());
  c::run(a.first.size(), [&] {
    return samebits_layer_norm(&a.first_view, weights.get(), biases.get(), &a.out_view, &mean.view,
                               &rstd.view, &options, &where);
  });
  return nb::make_tuple(a.result, mean.object, rstd.object);
}

nb::object layer_norm_gradient(int rule, nb::handle grad, nb::handle x, nb::handle mean,
                               nb::handle rstd, nb::handle weight, int format, nb::handle out,
                               nb::handle threads, nb::handle backend) {
  const row_arrays a(grad, "grad", x, "x", out, format);
  const row_numbers means(mean, "mean", a);
  const row_numbers rstds(rstd, "rstd", a);
  const row_vector weights(weight, "weight", a);
  const samebits_layer_norm_options options = layer_norm_options_of(rule, 1e-5, 0);
  const samebits_executor where =
      c::executor_of(threads, backend, nb::none(), a.first, a.first.size());
  c::run(a.first.size(), [&] {
    return samebits_layer_norm_gradient(&a.first_view, &a.second_view, &means.view, &rstds.view,
                                        weights.get(), &a.out_view, &options, &where);
  });
  return a.result;
}

}  // namespace

void bind_row_functions(nb::module_& m) {
  using nb::arg;
  m.def("softmax", &softmax, arg("logarithm"), arg("rule"), arg("x").none(), arg("offset"),
        arg("num_warps"), arg("elements_per_thread"), arg("format"), arg("out").none(),
        arg("threads").none(), arg("backend").none(),
        "Returns softmax or its logarithm over the last axis.");
  m.def("softmax_gradient", &softmax_gradient, arg("logarithm"), arg("rule"), arg("grad").none(),
        arg("result").none(), arg("offset"), arg("format"), arg("out").none(),
        arg("threads").none(), arg("backend").none(),
        "Returns the gradient of softmax or of its logarithm.");
  m.def("layer_norm", &layer_norm, arg("rule"), arg("x").none(), arg("weight").none(),
        arg("bias").none(), arg("epsilon"), arg("offset"), arg("format"), arg("out").none(),
        arg("threads").none(), arg("backend").none(),
        "Returns LayerNorm over the last axis, means and rstds.");
  m.def("layer_norm_gradient", &layer_norm_gradient, arg("rule"), arg("grad").none(),
        arg("x").none(), arg("mean").none(), arg("rstd").none(), arg("weight").none(),
        arg("format"), arg("out").none(), arg("threads").none(), arg("backend").none(),
        "Returns the gradient of LayerNorm's argument.");
}

}  // namespace samebits::python
