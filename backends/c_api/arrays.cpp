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

/// The options of quantize(), or a recipe.
struct quantizer : quantize_options {
  const recipe_preset* preset = nullptr;
};

struct product {
  accumulator sum = accumulator::exact();
  matmul_options options = {};
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

template <>
inline constexpr auto samebits::option_table<samebits::c_api::quantizer> = std::tuple_cat(
    std::tuple(option("recipe", &c_api::quantizer::preset)), option_table<quantize_options>);
template <>
inline constexpr auto samebits::option_table<samebits::c_api::product> =
    std::tuple_cat(options_in(&c_api::product::sum, option_table<accumulator>),
                   options_in(&c_api::product::options, option_table<matmul_options>));

namespace samebits::c_api {
namespace {

quantizer quantizer_of(const char* options) {
  quantizer q;
  set_options(q, options);
  if (q.preset == nullptr) return q;
  if (words_of(options).size() > 1) {
    throw invalid_argument("options: recipe must stand alone, because it sets all others");
  }
  q.tile = q.preset->rules.tile;
  return q;
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
    samebits::convert_options o;
    api::set_options(o, options);
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
    api::set_options(p, options);
    if (std::ranges::count(api::words_of(options), "sum", &api::word::name) == 0) {
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
    samebits::evaluate_options o;
    api::set_options(o, options);
    const auto f = api::named<samebits::function>(&api::required(function, "function"), "function");
    const samebits::const_matrix_view x = api::view(in, "in");
    const samebits::matrix_view y = api::view(out, "out");
    if (grad == nullptr) return samebits::evaluate(f, x, y, o, api::where(where));
    samebits::evaluate_gradient(f, api::view(grad, "grad"), x, y, o, api::where(where));
  });
}
