// Reductions: each returns numbers that describe an array.
#include "samebits/reductions.hpp"

#include "call.hpp"

namespace samebits::python {
namespace {

// An argument and the executor of a call with a result.
struct input {
  array a;
  matrix_view view;
  executor where;

  input(nb::handle x, const char* name, int format, nb::handle threads, nb::handle backend,
        nb::handle stream)
      : a(array_of(x, {.name = name, .format = format_of(format), .stream = stream_of(stream)})),
        view(view_of({&a, name})),
        where(executor_of(threads, backend, stream, a, a.size())) {}
};

nb::object reduce_by_name(const std::string& what, const input& in) {
  const auto reduced = [&](auto* reduction) {
    decltype(reduction(in.view, in.where)) result = {};
    run(in.a.size(), [&] { result = reduction(in.view, in.where); }, {{"in", "x"}});
    return result;
  };
  const host_guard guard;  // a subnormal float stays one as a Python number
  if (what == "amax") return nb::cast(reduced(amax));
  if (what == "sum") return nb::cast(reduced(sum));
  if (what == "sum_of_squares") return nb::cast(reduced(sum_of_squares));
  const element_counts c = reduced(counts);
  return nb::make_tuple(c.elements, c.nan, c.inf, c.zeros, c.subnormals);
}

double dot(nb::handle x, nb::handle y, int format, int precision, int order, nb::handle threads,
           nb::handle backend, nb::handle stream) {
  const input a(x, "x", format, threads, backend, stream);
  const input b(y, "y", format, threads, backend, stream);
  check_shape({&b.a, "y"}, a.a.dims, a.a.shape);
  const dot_options options = {.precision = static_cast<accumulation>(precision),
                               .order = static_cast<sum_order>(order)};
  double result = 0;
  run(a.a.size(), [&] { result = samebits::dot(a.view, b.view, options, a.where); });
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
