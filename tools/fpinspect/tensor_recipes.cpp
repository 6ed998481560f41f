// `fpinspect tensor --recipes`: implementation.
#include "fpinspect/tensor_recipes.hpp"

#include <optional>

#include "fpinspect/json_writer.hpp"
#include "fpinspect/quantize_source.hpp"
#include "fpinspect/tensor_stats.hpp"
#include "fpinspect/text.hpp"
#include "samebits/recipe.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

using samebits::quantize_statistics;
using samebits::recipe_preset;
using samebits::tensor_file::tensor_info;

quantize_statistics statistics_by(const recipe_preset& preset, const source_matrix& in,
                                  const samebits::executor& where) {
  owned_matrix codes(samebits::format_id::e4m3, {in.view.rows, in.view.cols});
  quantize_statistics statistics;
  samebits::quantize(in.view, {.codes = codes.view(), .statistics = &statistics}, preset.rules,
                     where);
  return statistics;
}

/// Calls f(preset, statistics) for the presets that need no state, f.none() for other tensors.
template <class Function>
void for_each_recipe(const samebits::tensor_file::tensor_file& file, const tensor_info& info,
                     const samebits::executor& where, const Function& f) {
  const auto format = samebits::tensor_file::format_of(info.type);
  if (!format || !is_quantizable(*format)) return;
  const source_matrix in = matrix_of(file, info, *format);
  for (const recipe_preset& p : samebits::recipe_presets) {
    if (p.rules.source == samebits::scale_source::current) f(p, statistics_by(p, in, where));
  }
}

std::string recipe_effect(std::string_view name, std::string_view sqnr, std::string_view under,
                          std::string_view saturated) {
  return cat("  ", left(name, 20), right(sqnr, 10), right(under, 14), right(saturated, 12), "\n");
}

}  // namespace

void write_tensor_recipes(const samebits::tensor_file::tensor_file& file,
                          std::span<const tensor_info> tensors, const std::string& path,
                          const samebits::executor& where, const terminal& term, output& out) {
  for (const tensor_info& info : tensors) {
    const std::string name = info.name.empty() ? samebits::tensor_file::escape_path(path)
                                               : samebits::tensor_file::escape(info.name, 256);
    out.write(cat(term.painted(paint::heading, name), "  ", samebits::tensor_file::name(info.type),
                  " [", comma_separated(info.shape), "]\n"));
    out.write(recipe_effect("recipe", "SQNR", "underflowed", "saturated"));
    bool any = false;
    for_each_recipe(file, info, where, [&](const recipe_preset& p, const quantize_statistics& s) {
      any = true;
      const auto db = sqnr_db(s.signal, s.noise);
      out.write(recipe_effect(p.name,
                              db             ? fixed(*db, 1) + " dB"
                              : s.noise == 0 ? "exact"
                                             : "-",
                              cat(s.underflowed), cat(s.saturated)));
    });
    if (!any) out.write("  not quantized: fp32, fp16 and bf16 are\n");
    out.write("\n");
  }
  out.write("to e4m3; `fpinspect recipes` says which recipes are verified\n");
}

void write_tensor_recipes_json(const samebits::tensor_file::tensor_file& file,
                               std::span<const tensor_info> tensors,
                               const samebits::executor& where, output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.key("tensors");
  json.begin_array();
  for (const tensor_info& info : tensors) {
    json.begin_object();
    json.member("name", info.name);
    json.member("shape", std::span<const std::uint64_t>(info.shape));
    json.key("recipes");
    json.begin_array();
    for_each_recipe(file, info, where, [&](const recipe_preset& p, const quantize_statistics& s) {
      json.begin_object(json_writer::layout::one_line);
      json.member("name", p.name);
      json.member("sqnr_db", sqnr_db(s.signal, s.noise));
      json.member("underflowed", s.underflowed);
      json.member("saturated", s.saturated);
      json.end_object();
    });
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out.write(json.document());
}

}  // namespace fpinspect
