// Matrix products and predictions of tensor cores.
#include "c_call.hpp"

namespace samebits::python {
namespace {

// Returns the accumulator of (kind, order, unit, promotion, result format, products).
samebits_accumulator accumulator_of(nb::tuple a) {
  samebits_accumulator s = SAMEBITS_ACCUMULATOR_INIT;
  s.kind = nb::cast<std::int32_t>(a[0]);
  s.order = nb::cast<std::int32_t>(a[1]);
  s.unit = nb::cast<std::int32_t>(a[2]);
  s.promotion = nb::cast<std::int64_t>(a[3]);
  s.result = nb::cast<std::int32_t>(a[4]);
  s.products = nb::cast<std::int32_t>(a[5]);
  return s;
}

// A view of an array with exactly two axes, of any strides that are not negative.
struct factor {
  array a;
  samebits_view view = {};
  bool present = false;

  factor(nb::handle x, const char* name, int format, access needs = access::read) {
    if (x.is_none()) return;
    a = array_of(x, {.name = name, .needs = needs, .format = format_of(format)});
    if (a.dims != 2) raise_invalid(std::string(name) + ": an array with two axes is expected");
    view = c::view_of({&a, name});
    present = true;
  }
  [[nodiscard]] const samebits_view* get() const { return present ? &view : nullptr; }
};

samebits_tile tile_of(nb::tuple t) {
  return {nb::cast<std::int64_t>(t[0]), nb::cast<std::int64_t>(t[1])};
}

nb::tuple tuple_of(const samebits_product_error& e) {
  nb::list octaves;
  for (const std::uint64_t n : e.octaves) octaves.append(n);
  return nb::make_tuple(e.count, e.nonfinite, e.unequal, e.mean, e.max, e.signal, e.noise,
                        e.rounding_noise, e.accumulation_noise, octaves);
}

// All arguments of a product except the accumulator.
struct product {
  factor a, b, d, a_scales, b_scales, c;
  samebits_matmul_options options = SAMEBITS_MATMUL_OPTIONS_INIT;

  product(nb::handle left, int a_format, nb::handle right, int b_format, nb::handle out, int to,
          nb::tuple scales)
      : a(left, "a", a_format),
        b(right, "b", b_format),
        d(out, "out", to, access::write),
        a_scales(scales[0], "a_scales", nb::cast<int>(scales[6])),
        b_scales(scales[2], "b_scales", nb::cast<int>(scales[7])),
        c(scales[4], "c", -1) {
    options.a_scales = a_scales.get();
    options.a_tile = tile_of(nb::cast<nb::tuple>(scales[1]));
    options.b_scales = b_scales.get();
    options.b_tile = tile_of(nb::cast<nb::tuple>(scales[3]));
    options.c = c.get();
    options.c_enters = nb::cast<std::int32_t>(scales[5]);
    options.order = nb::cast<std::int32_t>(scales[8]);
  }
};

void matmul(nb::handle a, int a_format, nb::handle b, int b_format, nb::handle out, int to,
            nb::tuple accumulator, nb::tuple scales, nb::handle threads, nb::handle backend) {
  const product p(a, a_format, b, b_format, out, to, scales);
  const samebits_accumulator sum = accumulator_of(accumulator);
  const samebits_executor where =
      c::executor_of(threads, backend, nb::none(), p.a.a, p.d.a.size() * p.a.view.cols);
  c::run(
      [&] { return samebits_matmul(&p.a.view, &p.b.view, &p.d.view, &sum, &p.options, &where); });
}

nb::tuple predict(nb::handle a, int a_format, nb::handle b, int b_format, nb::handle out, int to,
                  nb::tuple accumulator, nb::tuple scales, nb::handle threads, nb::handle backend) {
  const product p(a, a_format, b, b_format, out, to, scales);
  const samebits_accumulator sum = accumulator_of(accumulator);
  const samebits_executor where =
      c::executor_of(threads, backend, nb::none(), p.a.a, p.d.a.size() * p.a.view.cols);
  std::int32_t evidence = 0;
  samebits_product_error error = {};
  c::run([&] {
    return samebits_predict(&p.a.view, &p.b.view, &p.d.view, &sum, &p.options, &evidence, &error,
                            &where);
  });
  return nb::make_tuple(samebits_enum_name(SAMEBITS_ENUM_EVIDENCE, evidence), tuple_of(error));
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
