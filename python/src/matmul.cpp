// Matrix products and predictions of tensor cores.
#include "samebits/matmul.hpp"

#include "call.hpp"

namespace samebits::python {
namespace {

// Returns the accumulator of (kind, order, unit, promotion, result format, products).
accumulator accumulator_of(nb::tuple a) {
  return {.kind = enumerator_of<accumulator_kind>(a[0], "sum"),
          .order = enumerator_of<fp32_order>(a[1], "order"),
          .unit = enumerator_of<tensor_unit>(a[2], "unit"),
          .promotion = integer_of<std::int64_t>(a[3], "promotion"),
          .result = format_named(a[4], "unit_result"),
          .products = integer_of<int>(a[5], "products")};
}

// An array with exactly two axes, of any strides that are not negative; None gives one without data.
viewed factor(nb::handle x, const char* name, std::optional<format_id> format,
              access needs = access::read) {
  if (x.is_none()) return {};
  viewed v(x, {.name = name, .needs = needs, .format = format});
  if (v.a.dims != 2) raise_invalid(std::string(name) + ": an array with two axes is expected");
  return v;
}

nb::tuple tuple_of(const product_error& e) {
  nb::list octaves;
  for (const std::uint64_t n : e.octaves) octaves.append(n);
  return nb::make_tuple(e.count, e.nonfinite, e.unequal, e.mean, e.max, e.signal, e.noise,
                        e.rounding_noise, e.accumulation_noise, octaves);
}

// All arguments of a product. An operand is (array, format, scales, tile, format of the scales).
struct product {
  viewed a, b, d, a_scales, b_scales, c;
  accumulator sum;
  matmul_options options;

  product(nb::tuple left, nb::tuple right, nb::handle out, nb::handle to, nb::tuple accumulator,
          nb::tuple options_given)
      : a(factor(left[0], "a", format_of(left[1], "a_format"))),
        b(factor(right[0], "b", format_of(right[1], "b_format"))),
        d(factor(out, "out", format_of(to, "out"), access::write)),
        a_scales(factor(left[2], "a_scales", format_of(left[4]))),
        b_scales(factor(right[2], "b_scales", format_of(right[4]))),
        c(factor(options_given[0], "c", std::nullopt)),
        sum(accumulator_of(accumulator)) {
    options.a_scales = {a_scales.view, tile_of(left[3], "a_tile")};
    options.b_scales = {b_scales.view, tile_of(right[3], "b_tile")};
    options.c = c.view;
    options.c_enters = enumerator_of<addend>(options_given[1], "c_enters");
    const nb::handle order = item(options_given, 2);
    if (!order.is_none()) options.scale_order = enumerator_of<samebits::scale_order>(order, "scale_order");
  }
  // Calls compute(a, b, d, sum, options, where).
  template <class Compute>
  void run(nb::handle where, const Compute& compute) const {
    const executor on = executor_of(where, a.a, d.a.size() * a.view.cols);
    python::run([&] { compute(a.view, b.view, d.view, sum, options, on); },
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

void matmul(nb::tuple a, nb::tuple b, nb::handle out, nb::handle to, nb::tuple accumulator,
            nb::tuple options, nb::handle where) {
  product(a, b, out, to, accumulator, options).run(where, samebits::matmul);
}

nb::tuple predict(nb::tuple a, nb::tuple b, nb::handle out, nb::handle to, nb::tuple accumulator,
                  nb::tuple options, nb::handle where) {
  prediction found = {};
  product(a, b, out, to, accumulator, options).run(where, [&](const auto&... arguments) {
    found = samebits::predict(arguments...);
  });
  return nb::make_tuple(name(found.level), tuple_of(found.error));
}

}  // namespace

void bind_matmul(nb::module_& m) {
  def(m, "matmul", &matmul, "Writes a matrix product.");
  def(m, "predict", &predict, "Writes a tensor core's product; returns evidence and error.");
}

}  // namespace samebits::python
