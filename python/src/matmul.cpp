// Matrix products and predictions of tensor cores.
#include "samebits/matmul.hpp"

#include "call.hpp"

namespace samebits::python {
namespace {

// Returns the accumulator of (kind, order, unit, promotion, result format, products).
accumulator accumulator_of(nb::tuple a) {
  return {.kind = static_cast<accumulator_kind>(nb::cast<int>(a[0])),
          .order = static_cast<fp32_order>(nb::cast<int>(a[1])),
          .unit = static_cast<tensor_unit>(nb::cast<int>(a[2])),
          .promotion = nb::cast<std::int64_t>(a[3]),
          .result = static_cast<format_id>(nb::cast<int>(a[4])),
          .products = nb::cast<int>(a[5])};
}

// An array with exactly two axes, of any strides that are not negative; None gives one without data.
viewed factor(nb::handle x, const char* name, int format, access needs = access::read) {
  if (x.is_none()) return {};
  viewed v(x, {.name = name, .needs = needs, .format = format_of(format)});
  if (v.a.dims != 2) raise_invalid(std::string(name) + ": an array with two axes is expected");
  return v;
}

tile_shape tile_of(nb::handle t) {
  return {nb::cast<std::int64_t>(t[0]), nb::cast<std::int64_t>(t[1])};
}

nb::tuple tuple_of(const product_error& e) {
  nb::list octaves;
  for (const std::uint64_t n : e.octaves) octaves.append(n);
  return nb::make_tuple(e.count, e.nonfinite, e.unequal, e.mean, e.max, e.signal, e.noise,
                        e.rounding_noise, e.accumulation_noise, octaves);
}

// All arguments of a product.
struct product {
  viewed a, b, d, a_scales, b_scales, c;
  accumulator sum;
  matmul_options options;

  product(nb::handle left, int a_format, nb::handle right, int b_format, nb::handle out, int to,
          nb::tuple accumulator, nb::tuple scales)
      : a(factor(left, "a", a_format)),
        b(factor(right, "b", b_format)),
        d(factor(out, "out", to, access::write)),
        a_scales(factor(scales[0], "a_scales", nb::cast<int>(scales[6]))),
        b_scales(factor(scales[2], "b_scales", nb::cast<int>(scales[7]))),
        c(factor(scales[4], "c", -1)),
        sum(accumulator_of(accumulator)) {
    options.a_scales = {a_scales.view, tile_of(scales[1])};
    options.b_scales = {b_scales.view, tile_of(scales[3])};
    options.c = c.view;
    options.c_enters = static_cast<addend>(nb::cast<int>(scales[5]));
    const int order = nb::cast<int>(scales[8]);
    if (order >= 0) options.order = static_cast<scale_order>(order);
  }
  // Calls compute(a, b, d, sum, options, where).
  template <class Compute>
  void run(nb::handle threads, nb::handle backend, const Compute& compute) const {
    const executor where = executor_of(threads, backend, nb::none(), a.a, d.a.size() * a.view.cols);
    python::run([&] { compute(a.view, b.view, d.view, sum, options, where); },
                {{"d", "out"},
                 {"sum.promotion", "promotion"},
                 {"sum.result", "unit_result"},
                 {"sum.products", "products"},
                 {"a_scales.values", "a_scales"},
                 {"b_scales.values", "b_scales"},
                 {"a_scales.tile", "a_tile"},
                 {"b_scales.tile", "b_tile"}});
  }
};

void matmul(nb::handle a, int a_format, nb::handle b, int b_format, nb::handle out, int to,
            nb::tuple accumulator, nb::tuple scales, nb::handle threads, nb::handle backend) {
  const product p(a, a_format, b, b_format, out, to, accumulator, scales);
  p.run(threads, backend, samebits::matmul);
}

nb::tuple predict(nb::handle a, int a_format, nb::handle b, int b_format, nb::handle out, int to,
                  nb::tuple accumulator, nb::tuple scales, nb::handle threads, nb::handle backend) {
  const product p(a, a_format, b, b_format, out, to, accumulator, scales);
  prediction found = {};
  p.run(threads, backend,
        [&](const auto&... arguments) { found = samebits::predict(arguments...); });
  return nb::make_tuple(name(found.level), tuple_of(found.error));
}

}  // namespace

void bind_matmul(nb::module_& m) {
  using nb::arg;
  m.def("matmul", &matmul, arg("a"), arg("a_format"), arg("b"), arg("b_format"), arg("out"),
        arg("to"), arg("accumulator"), arg("scales"), arg("threads").none(), arg("backend").none(),
        "Writes a matrix product.");
  m.def("predict", &predict, arg("a"), arg("a_format"), arg("b"), arg("b_format"), arg("out"),
        arg("to"), arg("accumulator"), arg("scales"), arg("threads").none(), arg("backend").none(),
        "Writes a tensor core's product; returns evidence and error.");
}

}  // namespace samebits::python
