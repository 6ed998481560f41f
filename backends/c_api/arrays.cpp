// Version, backends, formats, and the functions of arrays through the C interface.
#include <string>
#include <vector>

#include "backends/c_api/arguments.hpp"
#include "backends/c_api/error.hpp"
#include "samebits/convert.hpp"
#include "samebits/core/config.hpp"
#include "samebits/evaluate.hpp"
#include "samebits/matmul.hpp"
#include "samebits/quantize.hpp"
#include "samebits/recipe.hpp"

namespace samebits::c_api {
namespace {

constexpr option<convert_options> converting[] = {
    {"rounding", [](convert_options& o, const word& w) { read(w, o.rounding); }},
    {"overflow", [](convert_options& o, const word& w) { read(w, o.overflow); }},
    {"nan", [](convert_options& o, const word& w) { read(w, o.nan); }},
};

constexpr option<evaluate_options> evaluating[] = {
    {"rule", [](evaluate_options& o, const word& w) { read(w, o.rule); }},
    {"parameter", [](evaluate_options& o, const word& w) { read(w, o.parameter); }},
    {"rounding", [](evaluate_options& o, const word& w) { read(w, o.rounding); }},
    {"overflow", [](evaluate_options& o, const word& w) { read(w, o.overflow); }},
};

/// The options of quantize(), or a recipe.
struct quantizer : quantize_options {
  const recipe_preset* preset = nullptr;
};

void read_recipe(quantizer& to, const word& w) {
  to.preset = find_recipe(w.value);
  if (to.preset == nullptr) {
    std::vector<std::string_view> names;
    for (const recipe_preset& p : recipe_presets) names.push_back(p.name);
    refuse_name(w.name, w.value, names);
  }
  to.tile = to.preset->rules.tile;
}

constexpr option<quantizer> quantizing[] = {
    {"recipe", read_recipe},
    {"tile", [](quantizer& o, const word& w) { read(w, o.tile); }},
    {"scale", [](quantizer& o, const word& w) { read(w, o.rule); }},
    {"eps", [](quantizer& o, const word& w) { read(w, o.eps); }},
    {"upper_bound", [](quantizer& o, const word& w) { read(w, o.upper_bound); }},
    {"nonfinite", [](quantizer& o, const word& w) { read(w, o.nonfinite); }},
    {"scale_overflow", [](quantizer& o, const word& w) { read(w, o.scale_overflow); }},
    {"rounding", [](quantizer& o, const word& w) { read(w, o.rounding); }},
    {"overflow", [](quantizer& o, const word& w) { read(w, o.overflow); }},
    {"nan", [](quantizer& o, const word& w) { read(w, o.nan); }},
};

quantizer quantizer_of(const char* options) {
  quantizer q;
  set_options<quantizer>(q, options, quantizing, random_options<quantizer>);
  if (q.preset != nullptr && words_of(options).size() > 1) {
    throw invalid_argument("options: recipe must stand alone, because it sets all others");
  }
  return q;
}

struct product {
  accumulator sum = accumulator::exact();
  bool has_sum = false;
  matmul_options options = {};
};

constexpr option<product> multiplying[] = {
    {"sum",
     [](product& o, const word& w) {
       read(w, o.sum.kind);
       o.has_sum = true;
     }},
    {"order", [](product& o, const word& w) { read(w, o.sum.order); }},
    {"unit", [](product& o, const word& w) { read(w, o.sum.unit); }},
    {"promotion", [](product& o, const word& w) { read(w, o.sum.promotion); }},
    {"unit_result", [](product& o, const word& w) { read(w, o.sum.result); }},
    {"products", [](product& o, const word& w) { read(w, o.sum.products); }},
    {"a_tile", [](product& o, const word& w) { read(w, o.options.a_scales.tile); }},
    {"b_tile", [](product& o, const word& w) { read(w, o.options.b_scales.tile); }},
    {"scale_order", [](product& o, const word& w) { read(w, o.options.order); }},
    {"c_enters", [](product& o, const word& w) { read(w, o.options.c_enters); }},
};

/// Returns the element at a position, for the functions that list something.
template <class List>
const auto& at(const List& list, std::int32_t i) {
  if (i < 0 || i >= static_cast<std::int32_t>(list.size())) {
    throw invalid_argument("i: must be in 0 .. " + std::to_string(list.size() - 1) + ", got " +
                           std::to_string(i));
  }
  return list[static_cast<std::size_t>(i)];
}

}  // namespace
}  // namespace samebits::c_api

namespace api = samebits::c_api;

int32_t samebits_interface() { return SAMEBITS_C_INTERFACE; }

int32_t samebits_version() {
  return 10000 * SAMEBITS_VERSION_MAJOR + 100 * SAMEBITS_VERSION_MINOR + SAMEBITS_VERSION_PATCH;
}

int samebits_backend(int32_t i, const char** name, const char** why_unsupported,
                     int32_t* on_device) {
  return api::guarded([&] {
    // Never destroyed, because callers keep the texts.
    static const auto& all = *new std::vector(samebits::compiled_backends());
    const samebits::backend_info& info = api::at(all, i);
    api::write(name, info.name.data());  // a literal
    api::write(why_unsupported, info.why_unsupported.c_str());
    api::write(on_device, info.space);
  });
}

int samebits_format(int32_t i, const char** name, int32_t* bytes) {
  return api::guarded([&] {
    const auto& spec = api::at(std::span(samebits::detail::host_format_table.rows), i);
    api::write(name, spec.name);
    api::write(bytes, spec.storage_bits / 8);
  });
}

int samebits_convert(const samebits_array* in, const samebits_array* out, const char* options,
                     const samebits_executor* where) {
  return api::guarded([&] {
    using options_type = samebits::convert_options;
    options_type o;
    api::set_options<options_type>(o, options, api::converting, api::random_options<options_type>);
    samebits::convert(api::view(in, "in"), api::view(out, "out"), o, api::where(where));
  });
}

int samebits_scales_shape(int64_t rows, int64_t cols, const char* options, int64_t* scale_rows,
                          int64_t* scale_cols) {
  return api::guarded([&] {
    const auto shape = samebits::scales_shape(rows, cols, api::quantizer_of(options).tile);
    api::write(scale_rows, shape.rows);
    api::write(scale_cols, shape.cols);
  });
}

int samebits_quantize(const samebits_array* in, const samebits_array* codes,
                      const samebits_array* scales, const char* options,
                      const samebits_executor* where) {
  return api::guarded([&] {
    const api::quantizer q = api::quantizer_of(options);
    const samebits::const_matrix_view from = api::view(in, "in");
    const samebits::quantize_outputs to = {.codes = api::view(codes, "codes"),
                                           .scales = api::view(scales, "scales")};
    if (q.preset != nullptr)
      return samebits::quantize(from, to, q.preset->rules, api::where(where));
    samebits::quantize(from, to, static_cast<const samebits::quantize_options&>(q),
                       api::where(where));
  });
}

int samebits_dequantize(const samebits_array* codes, const samebits_array* scales,
                        const samebits_array* out, const char* options,
                        const samebits_executor* where) {
  return api::guarded([&] {
    samebits::dequantize(api::view(codes, "codes"), api::view(scales, "scales"),
                         api::view(out, "out"), api::quantizer_of(options).tile, api::where(where));
  });
}

int samebits_matmul(const samebits_array* a, const samebits_array* a_scales,
                    const samebits_array* b, const samebits_array* b_scales,
                    const samebits_array* c, const samebits_array* d, const char* options,
                    const samebits_executor* where) {
  return api::guarded([&] {
    api::product p;
    api::set_options<api::product>(p, options, api::multiplying);
    if (!p.has_sum) {
      throw samebits::invalid_argument("options: must name the accumulation, such as sum=exact");
    }
    p.options.a_scales.values = api::optional_view(a_scales, "a_scales");
    p.options.b_scales.values = api::optional_view(b_scales, "b_scales");
    p.options.c = api::optional_view(c, "c");
    samebits::matmul(api::view(a, "a"), api::view(b, "b"), api::view(d, "d"), p.sum, p.options,
                     api::where(where));
  });
}

int samebits_evaluate(const char* function, const samebits_array* grad, const samebits_array* in,
                      const samebits_array* out, const char* options,
                      const samebits_executor* where) {
  return api::guarded([&] {
    using options_type = samebits::evaluate_options;
    options_type o;
    api::set_options<options_type>(o, options, api::evaluating, api::random_options<options_type>);
    const auto f =
        api::enumerator<samebits::function>(&api::required(function, "function"), "function");
    const samebits::const_matrix_view x = api::view(in, "in");
    const samebits::matrix_view y = api::view(out, "out");
    if (grad == nullptr) return samebits::evaluate(f, x, y, o, api::where(where));
    samebits::evaluate_gradient(f, api::view(grad, "grad"), x, y, o, api::where(where));
  });
}
