// Reductions: each returns numbers that describe an array.
#include "c_call.hpp"

namespace samebits::python {
namespace {

// An argument and the executor of a call with a result.
struct input {
  array a;
  samebits_view view;
  samebits_executor where;

  input(nb::handle x, const char* name, int format, nb::handle threads, nb::handle backend,
        nb::handle stream)
      : a(array_of(x, {.name = name, .format = format_of(format), .stream = stream_of(stream)})),
        view(c::view_of({&a, name})),
        where(c::executor_of(threads, backend, stream, a, a.size())) {}
};

template <class Result>
Result reduce(std::int32_t (*call)(const samebits_view*, Result*, const samebits_executor*),
              const input& in) {
  Result result = {};
  c::run(in.a.size(), [&] { return call(&in.view, &result, &in.where); });
  return result;
}

nb::object reduce_by_name(const std::string& what, const input& in) {
  const host_guard guard;  // a subnormal float stays one as a Python number
  if (what == "amax") return nb::cast(reduce<float>(samebits_amax, in));
  if (what == "sum") return nb::cast(reduce<double>(samebits_sum, in));
  if (what == "sum_of_squares") return nb::cast(reduce<double>(samebits_sum_of_squares, in));
  const auto c = reduce<samebits_element_counts>(samebits_counts, in);
  return nb::make_tuple(c.elements, c.nan, c.inf, c.zeros, c.subnormals);
}

double dot(nb::handle x, nb::handle y, int format, int precision, int order, nb::handle threads,
           nb::handle backend, nb::handle stream) {
  const input a(x, "x", format, threads, backend, stream);
  const input b(y, "y", format, threads, backend, stream);
  check_shape({&b.a, "y"}, a.a.dims, a.a.shape);
  samebits_dot_options options = SAMEBITS_DOT_OPTIONS_INIT;
  options.precision = precision;
  options.order = order;
  double result = 0;
  c::run(a.a.size(), [&] { return samebits_dot(&a.view, &b.view, &options, &result, &a.where); });
  return result;
}

}  // namespace

void bind_reductions(nb::module_& m) {
  m.def(
      "reduce",
      [](const char* what, nb::handle x, int format, nb::handle threads, nb::handle backend,
         nb::handle stream) {
        return reduce_by_name(what, input(x, "x", format, threads, backend, stream));
      },
      nb::arg("what"), nb::arg("x").none(), nb::arg("format"), nb::arg("threads").none(),
      nb::arg("backend").none(), nb::arg("stream").none(),
      "Returns amax, sum, sum_of_squares or counts of an array.");
  m.def("dot", &dot, nb::arg("x").none(), nb::arg("y").none(), nb::arg("format"),
        nb::arg("precision"), nb::arg("order"), nb::arg("threads").none(),
        nb::arg("backend").none(), nb::arg("stream").none(),
        "Returns the dot product of two arrays.");
}

}  // namespace samebits::python
