// Matrix products, predictions of tensor cores, and rules found from products.
#include "samebits/matmul.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "call.hpp"
#include "samebits/matmul_plan.hpp"
#include "samebits/product_rule.hpp"

namespace samebits::python {
namespace {

// An array with exactly two axes, of any strides that are not negative.
viewed factor(nb::handle x, const char* name, std::optional<format_id> format,
              access needs = access::read, void* stream = nullptr) {
  viewed v(x, {.name = name, .needs = needs, .format = format, .stream = stream});
  if (v.a.dims != 2) {
    raise_invalid(std::string(name) + ": an array with two axes is expected; got " +
                  std::to_string(v.a.dims));
  }
  return v;
}

viewed factor_or_none(nb::handle x, const char* name, std::optional<format_id> format = {},
                      void* stream = nullptr) {
  return x.is_none() ? viewed{} : factor(x, name, format, access::read, stream);
}

nb::tuple tuple_of(const product_error& e) {
  return nb::make_tuple(e.count, e.nonfinite, e.unequal, e.mean, e.max, e.signal, e.noise,
                        e.rounding_noise, e.accumulation_noise, list_of(e.octaves));
}

// All arguments of a product but its result. An operand is (array, format, scales, format of the
// scales).
struct product {
  viewed a, b, a_scales, b_scales, c;
  accumulator sum;
  matmul_options options;

  product(nb::tuple left, nb::tuple right, nb::handle added, nb::handle accumulation,
          nb::handle how)
      : a(factor(left[0], "a", format_of(left[1], "a_format"))),
        b(factor(right[0], "b", format_of(right[1], "b_format"))),
        a_scales(factor_or_none(left[2], "a_scales", format_of(left[3]))),
        b_scales(factor_or_none(right[2], "b_scales", format_of(right[3]))),
        c(factor_or_none(added, "c")),
        sum(options_of<accumulator>(accumulation)),
        options(options_of<matmul_options>(how)) {
    options.a_scales.values = a_scales.view;
    options.b_scales.values = b_scales.view;
    options.c = c.view;
  }
  // Calls compute(a, b, d, sum, options, where) and returns d: `out`, or a new array in the format that
  // `out` is.
  template <class Compute>
  nb::object run(nb::tuple left, nb::handle out, nb::handle where, const Compute& compute) const {
    viewed d;
    nb::object result = nb::borrow(out);
    if (!PyUnicode_Check(out.ptr()) && !PyType_Check(out.ptr()) && nb::hasattr(out, "dtype")) {
      d = factor(out, "out", std::nullopt, access::write);
    } else {
      const std::int64_t shape[] = {a.view.rows, b.view.cols};
      output made = new_output(left[0], a.a, 2, shape, format_named(out, "out"));
      d.view = view_of({&made.a, "out"});
      d.a = std::move(made.a);
      result = made.object;
    }
    const executor on = executor_of(where, a.a, d.a.size() * a.view.cols);
    python::run([&] { compute(a.view, b.view, d.view, sum, options, on); },
                {{"d", "out"}, {"result", "unit_result"}});
    return result;
  }
};

nb::object matmul(nb::tuple a, nb::tuple b, nb::handle c, nb::handle out, nb::handle sum,
                  nb::handle how, nb::handle where) {
  return product(a, b, c, sum, how).run(a, out, where, [](const auto&... arguments) {
    samebits::matmul(arguments...);
  });
}

nb::tuple predict(nb::tuple a, nb::tuple b, nb::handle c, nb::handle out, nb::handle sum,
                  nb::handle how, nb::handle where) {
  prediction found = {};
  const nb::object d = product(a, b, c, sum, how).run(a, out, where, [&](const auto&... arguments) {
    found = samebits::predict(arguments...);
  });
  return nb::make_tuple(d, name(found.level), tuple_of(found.error));
}

// Returns the texts of the rules that fit. `search` is (units, max_slices, sample).
nb::list find_rule(nb::tuple a, nb::tuple b, nb::handle c, nb::handle d, nb::handle how,
                   nb::tuple search, nb::handle where) {
  const product of(a, b, c, nb::make_tuple("exact"), how);
  const viewed given = factor(d, "d", std::nullopt);
  find_rule_options options{.known = of.options,
                            .units = {},
                            .max_slices = integer_of<std::int64_t>(search[1], "max_slices"),
                            .sample = integer_of<std::int64_t>(search[2], "sample")};
  for (const nb::handle unit : search[0]) set_value(unit, "units", options.units.emplace_back());
  const executor on = executor_of(where, of.a.a, given.a.size() * of.a.view.cols);
  std::vector<product_rule> found;
  python::run([&] { found = samebits::find_rule(of.a.view, of.b.view, given.view, options, on); });
  return list_of(found, rule_text);
}

// The members of a rule in the order of its table.
nb::list parsed_rule(nb::handle text) {
  nb::list values;
  run_to_end(0, [&] { values = dict_of(parse_rule(text_of(text, "rule"))).values(); });
  return values;
}

// A product on a GPU, for samebits.torch.MatmulPlan. `how` is (a_tile, b_tile, fast accumulation).
struct planned {
  void* stream;
  viewed a, b, d, a_scales, b_scales;
  matmul_plan_options options;
  executor on;

  planned(nb::handle left, nb::handle right, nb::handle out, nb::tuple scales, nb::tuple how,
          nb::handle where)
      : stream(stream_in(where)),
        a(factor(left, "a", {}, access::read, stream)),
        b(factor(right, "b", {}, access::read, stream)),
        d(factor(out, "out", {}, access::write, stream)),
        a_scales(factor_or_none(scales[0], "a_scales", {}, stream)),
        b_scales(factor_or_none(scales[1], "b_scales", {}, stream)) {
    options.a_scales = {a_scales.view, tile_of(how[0], "a_tile")};
    options.b_scales = {b_scales.view, tile_of(how[1], "b_tile")};
    options.fast_accumulation = flag_of(how[2], "fast_accumulation");
    on = executor_of(where, a.a, elements_without_release);
  }
};

matmul_plan plan_of(const planned& p) {
  std::optional<matmul_plan> made;
  run([&] { made.emplace(p.a.view, p.b.view, p.d.view, p.options, p.on); }, {{"d", "out_dtype"}});
  return *std::move(made);
}

struct plan {
  matmul_plan of;

  plan(nb::handle a, nb::handle b, nb::handle out, nb::tuple scales, nb::tuple how,
       nb::handle where)
      : of(plan_of(planned(a, b, out, scales, how, where))) {}
  void run(nb::handle a, nb::handle b, nb::handle out, nb::tuple scales, nb::tuple how,
           nb::handle where) const {
    const planned p(a, b, out, scales, how, where);
    python::run([&] { of.run(p.a.view, p.b.view, p.d.view, p.options, p.on); }, {{"d", "out"}});
  }
  [[nodiscard]] std::string rule() const { return rule_text({of.rule(), addend::last}); }
};

}  // namespace

void bind_matmul(nb::module_& m) {
  def(m, "matmul", &matmul, "Returns a matrix product.");
  def(m, "predict", &predict, "Returns a tensor core's product, evidence and error.");
  def(m, "find_rule", &find_rule, "Returns the texts of the rules that give a product.");
  def(m, "parse_rule", &parsed_rule, "Returns a rule's accumulator and place of C.");
  nb::class_<plan>(m, "MatmulPlan", "A product on a GPU; samebits.torch.MatmulPlan wraps it.")
      .def(nb::init<nb::handle, nb::handle, nb::handle, nb::tuple, nb::tuple, nb::handle>())
      .def("run", &plan::run)
      .def_prop_ro("rule", &plan::rule)
      .def_prop_ro("algorithm", [](const plan& p) { return p.of.algorithm(); });
}

}  // namespace samebits::python
