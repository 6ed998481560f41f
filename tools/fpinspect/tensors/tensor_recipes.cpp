// `fpinspect tensor --recipes`: implementation.
#include "fpinspect/tensors/tensor_views.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/progress.hpp"
#include "fpinspect/output/table.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "fpinspect/quantize/sqnr.hpp"
#include "samebits/recipe.hpp"

namespace fpinspect {
namespace {

using samebits::quantize_statistics;
using samebits::recipe_preset;

/// A tensor and what of it is quantized.
struct recipe_source {
  const shown_tensor& tensor;
  std::string name;  ///< its name among the tensors of all files
  samebits::matrix_shape matrix;
};

/// What one preset does to a tensor.
struct recipe_result : quantization {
  const recipe_preset* preset;
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
  return source.tensor.has_numbers() && is_quantizable(source.tensor.how.format);
}

/// The results of all presets without state for each tensor; none for tensors that cannot be
/// quantized.
std::vector<std::vector<recipe_result>> results_for(std::span<const recipe_source> tensors,
                                                    const samebits::executor& where) {
  const std::vector<const recipe_preset*> presets = presets_without_state();
  std::uint64_t bytes = 0;
  for (const recipe_source& source : tensors) {
    if (is_quantized(source)) bytes += source.tensor.info.bytes;
  }
  progress line(bytes, bytes * presets.size());
  std::vector<std::vector<recipe_result>> results(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const recipe_source& source = tensors[i];
    if (!is_quantized(source)) continue;
    const source_matrix in = matrix_of(source.tensor, source.matrix);
    for (const recipe_preset* p : presets) {
      const quantize_statistics s = statistics_by(*p, samebits::format_id::e4m3, in.view, where);
      const bool saturates = options_of(p->rules).overflow != samebits::overflow::ieee;
      const auto scale_bits = static_cast<double>(scale_bits_of(p->rules, source.matrix));
      const auto elements =
          static_cast<double>(std::max<std::uint64_t>(source.tensor.info.count, 1));
      results[i].push_back({{s, sqnr_of(s, saturates)}, p, 8.0 + scale_bits / elements});
      line.add(source.tensor.info.bytes);
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
      conditions.add<quantization>(quantization_figures, r.preset->name,
                                   cat(name, " by ", r.preset->name), r);
    }
  }
}

constexpr column<recipe_result> recipe_columns[] = {
    {"name", "  recipe", 22, [](auto& r) { return r.preset->name; },
     [](auto& r) { return cat("  ", r.preset->name); }},
    {"", "tile", 9, nullptr, [](auto& r) { return block_text(r.preset->rules.tile); }},
    {"", "scale", 9, nullptr, [](auto& r) { return samebits::name(r.preset->rules.scale); }},
    {"sqnr_db", "SQNR", -10, [](auto& r) { return r.ratio.db; },
     [](auto& r) { return r.ratio.text(); }},
    {"sqnr_note", "", 0, [](auto& r) { return r.ratio.note(); }},
    {"underflowed", "underflowed", -13, [](auto& r) { return r.statistics.underflowed; }},
    {"saturated", "saturated", -11, [](auto& r) { return r.statistics.saturated; }},
    {"bits", "bits", -6, [](auto& r) { return r.bits; },
     [](auto& r) { return general(r.bits, 3); }},
};

json_object json_of(const recipe_source& source, const std::vector<recipe_result>& results) {
  return {{"name", source.tensor.info.name},
          {"shape", source.tensor.info.shape},
          {"matrix", extents_of(source.matrix)},
          {"recipes", table_json<recipe_result>(recipe_columns, results, true)}};
}

std::string text_of(const recipe_source& source, const std::vector<recipe_result>& results,
                    const terminal& term) {
  const auto& info = source.tensor.info;
  const std::span<const column<recipe_result>> columns = recipe_columns;
  std::string text =
      cat(term.painted(paint::heading, source.tensor.title()), "  ",
          info.unread.empty() ? samebits::tensor_file::name(info.type) : "not read", " [",
          comma_separated(info.shape), "]",
          source.matrix != matrix_of(info) ? cat(" as ", shape_text(source.matrix)) : "", "\n",
          table_heading(columns), table_lines(columns, results));
  if (results.empty()) text += cat("  ", not_quantized, "\n");
  return text + "\n";
}

}  // namespace

void write_tensor_recipes(std::span<const shown_tensor> tensors, std::span<const std::string> names,
                          gate& conditions, const samebits::executor& where, const session& s) {
  std::vector<recipe_source> sources;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string name = tensors[i].plain_name();
    sources.push_back(
        {tensors[i], names[i],
         judged_matrix_of(tensors[i].info, is_weight_shaped(name, guessed_role(name)))});
  }
  const std::vector<std::vector<recipe_result>> results = results_for(sources, where);
  add_figures(conditions, sources, results);
  json_array all;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (s.json) {
      all.add(json_of(sources[i], results[i]));
    } else {
      s.out.write(text_of(sources[i], results[i], s.term));
    }
  }
  if (s.json) return s.write_json({{"tensors", all}, {"fail_if", conditions.json()}});
  s.out.write("to e4m3; `fpinspect recipes` says which recipes are verified\n");
}

}  // namespace fpinspect
