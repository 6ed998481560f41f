// `fpinspect tensor --recipes`: implementation.
#include "fpinspect/tensors/tensor_recipes.hpp"

#include <optional>

#include "fpinspect/cli/text.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "fpinspect/quantize/sqnr.hpp"
#include "samebits/recipe.hpp"

namespace fpinspect {
namespace {

using samebits::quantize_statistics;
using samebits::recipe_preset;

quantize_statistics statistics_by(const recipe_preset& preset, const source_matrix& in,
                                  const samebits::executor& where) {
  quantize_statistics statistics;
  samebits::quantize(in.view,
                     {.codes = {.format = samebits::format_id::e4m3}, .statistics = &statistics},
                     preset.rules, where);
  return statistics;
}

/// Calls f(preset, statistics, ratio) for each preset that needs no state. Never calls f for
/// tensors that cannot be quantized.
template <class Function>
void for_each_recipe(const recipe_source& source, const samebits::executor& where,
                     const Function& f) {
  if (!source.how || !is_quantizable(source.how->format)) return;
  const source_matrix in = matrix_of(*source.file, source.info, *source.how);
  for (const recipe_preset& p : samebits::recipe_presets) {
    if (p.rules.source != samebits::scale_source::current) continue;
    const quantize_statistics s = statistics_by(p, in, where);
    f(p, s, sqnr_of(s, options_of(p.rules).on_overflow != samebits::overflow::ieee));
  }
}

std::string recipe_effect(std::string_view name, std::string_view sqnr, std::string_view under,
                          std::string_view saturated) {
  return cat("  ", left(name, 20), right(sqnr, 10), right(under, 14), right(saturated, 12), "\n");
}

}  // namespace

void write_tensor_recipes(std::span<const recipe_source> tensors, const samebits::executor& where,
                          const terminal& term, output& out) {
  for (const recipe_source& source : tensors) {
    const auto& info = source.info;
    const bool read = info.unread.empty();
    out.write(cat(term.painted(paint::heading, source.title), "  ",
                  read ? samebits::tensor_file::name(info.type) : "not read", " [",
                  comma_separated(info.shape), "]\n"));
    out.write(recipe_effect("recipe", "SQNR", "underflowed", "saturated"));
    bool any = false;
    for_each_recipe(
        source, where,
        [&](const recipe_preset& p, const quantize_statistics& s, const sqnr& ratio) {
          any = true;
          out.write(recipe_effect(p.name, ratio.text(), cat(s.underflowed), cat(s.saturated)));
        });
    if (!any) out.write("  not quantized: fp32, fp16, bf16 and integers of up to 16 bits are\n");
    out.write("\n");
  }
  out.write("to e4m3; `fpinspect recipes` says which recipes are verified\n");
}

void write_tensor_recipes_json(std::span<const recipe_source> tensors,
                               const samebits::executor& where, output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.key("tensors");
  json.begin_array();
  for (const recipe_source& source : tensors) {
    const auto& info = source.info;
    json.begin_object();
    json.member("name", info.name);
    json.member("shape", std::span<const std::uint64_t>(info.shape));
    json.key("recipes");
    json.begin_array();
    for_each_recipe(
        source, where,
        [&](const recipe_preset& p, const quantize_statistics& statistics, const sqnr& ratio) {
          json.begin_object(json_writer::layout::one_line);
          json.member("name", p.name);
          json.member("sqnr_db", ratio.db);
          json.member("sqnr_note", ratio.note());
          json.member("underflowed", statistics.underflowed);
          json.member("saturated", statistics.saturated);
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
