// `fpinspect tensor --recipes`: implementation.
#include "fpinspect/tensors/tensor_recipes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/progress.hpp"
#include "fpinspect/quantize/quantize_arguments.hpp"
#include "fpinspect/quantize/quantize_gate.hpp"
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

/// What one preset does to a tensor.
struct recipe_result {
  const recipe_preset* preset;
  quantize_statistics statistics;
  sqnr ratio;
  double bits;  ///< of an element, with its share of the scales of its tile
};

/// The presets that need no state.
std::vector<const recipe_preset*> presets_without_state() {
  std::vector<const recipe_preset*> presets;
  for (const recipe_preset& p : samebits::recipe_presets) {
    if (p.rules.source == samebits::scale_source::current) presets.push_back(&p);
  }
  return presets;
}

bool is_quantized(const recipe_source& source) {
  return source.how && is_quantizable(source.how->format);
}

/// The results of all presets without state for each tensor; none for tensors that cannot be
/// quantized.
std::vector<std::vector<recipe_result>> results_for(std::span<const recipe_source> tensors,
                                                    const samebits::executor& where) {
  const std::vector<const recipe_preset*> presets = presets_without_state();
  std::uint64_t bytes = 0;
  for (const recipe_source& source : tensors) {
    if (is_quantized(source)) bytes += source.info.bytes;
  }
  progress line(bytes, bytes * presets.size());
  std::vector<std::vector<recipe_result>> results(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const recipe_source& source = tensors[i];
    if (!is_quantized(source)) continue;
    const source_matrix in = matrix_of(*source.file, source.info, *source.how, source.matrix);
    for (const recipe_preset* p : presets) {
      const quantize_statistics s = statistics_by(*p, in, where);
      const bool saturates = options_of(p->rules).overflow != samebits::overflow::ieee;
      const auto scale_bits = static_cast<double>(scale_bits_of(p->rules, source.matrix));
      const auto elements = static_cast<double>(std::max<std::uint64_t>(source.info.count, 1));
      results[i].push_back({p, s, sqnr_of(s, saturates), 8.0 + scale_bits / elements});
      line.add(source.info.bytes);
    }
  }
  return results;
}

constexpr const char* not_quantized =
    "not quantized: fp32, fp16, bf16 and integers of up to 16 bits are";

void add_figures(gate& conditions, std::span<const recipe_source> tensors,
                 const std::vector<std::vector<recipe_result>>& results) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string& name = tensors[i].name;
    if (results[i].empty()) {
      conditions.add_failure(name, not_quantized);
      continue;
    }
    const quantize_statistics& s = results[i].front().statistics;
    conditions.add_nonfinite(name, s.nan, s.inf, s.elements);
    for (const recipe_result& r : results[i]) {
      add_quantization(conditions, r.preset->name, cat(name, " by ", r.preset->name), r.statistics,
                       r.ratio);
    }
  }
}

std::string recipe_effect(std::string_view name, std::string_view tile, std::string_view rule,
                          std::string_view sqnr, std::string_view under, std::string_view saturated,
                          std::string_view bits) {
  return cat("  ", left(name, 20), left(tile, 9), left(rule, 9), right(sqnr, 10), right(under, 13),
             right(saturated, 11), right(bits, 6), "\n");
}

}  // namespace

void write_tensor_recipes(std::span<const recipe_source> tensors, gate& conditions,
                          const samebits::executor& where, const terminal& term, output& out) {
  const std::vector<std::vector<recipe_result>> results = results_for(tensors, where);
  add_figures(conditions, tensors, results);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const recipe_source& source = tensors[i];
    const auto& info = source.info;
    const bool read = info.unread.empty();
    out.write(cat(term.painted(paint::heading, source.title), "  ",
                  read ? samebits::tensor_file::name(info.type) : "not read", " [",
                  comma_separated(info.shape), "]",
                  source.matrix != matrix_of(info) ? cat(" as ", shape_text(source.matrix)) : "",
                  "\n"));
    out.write(recipe_effect("recipe", "tile", "scale", "SQNR", "underflowed", "saturated", "bits"));
    for (const recipe_result& r : results[i]) {
      out.write(recipe_effect(r.preset->name, block_text(r.preset->rules.tile),
                              samebits::name(r.preset->rules.scale), r.ratio.text(),
                              cat(r.statistics.underflowed), cat(r.statistics.saturated),
                              general(r.bits, 3)));
    }
    if (results[i].empty()) {
      out.write(cat("  ", not_quantized, "\n"));
    }
    out.write("\n");
  }
  out.write("to e4m3; `fpinspect recipes` says which recipes are verified\n");
}

void write_tensor_recipes_json(std::span<const recipe_source> tensors, gate& conditions,
                               const samebits::executor& where, output& out) {
  const std::vector<std::vector<recipe_result>> results = results_for(tensors, where);
  add_figures(conditions, tensors, results);
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.key("tensors");
  json.begin_array();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& info = tensors[i].info;
    json.begin_object();
    json.member("name", info.name);
    json.member("shape", std::span<const std::uint64_t>(info.shape));
    const std::array matrix = {static_cast<std::uint64_t>(tensors[i].matrix.rows),
                               static_cast<std::uint64_t>(tensors[i].matrix.cols)};
    json.member("matrix", std::span<const std::uint64_t>(matrix));
    json.key("recipes");
    json.begin_array();
    for (const recipe_result& r : results[i]) {
      json.begin_object(json_writer::layout::one_line);
      json.member("name", r.preset->name);
      json.member("sqnr_db", r.ratio.db);
      json.member("sqnr_note", r.ratio.note());
      json.member("underflowed", r.statistics.underflowed);
      json.member("saturated", r.statistics.saturated);
      json.member("bits", r.bits);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  conditions.write_json(json);
  json.end_object();
  out.write(json.document());
}

}  // namespace fpinspect
