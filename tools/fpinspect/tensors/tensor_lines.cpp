// `fpinspect tensor --quick` and `--recipes`: text, JSON and conditions.
#include "fpinspect/tensors/tensor_views.hpp"

#include "fpinspect/output/progress.hpp"
#include "samebits/packing.hpp"

namespace fpinspect {

// --- `fpinspect tensor --quick` ------------------------------------------------------------------

namespace {

std::string line_of(const std::vector<std::string>& numbers, const std::string& zeros,
                    const std::string& nonfinite, const std::string& name) {
  const auto cell = [](const std::string& number) { return right(number, 10); };
  return cat(joined(numbers, cell, ""), right(zeros, 9), right(nonfinite, 10), "  ", name, "\n");
}

std::string line_of(const cast_statistics& s, const std::string& name) {
  std::vector<std::string> numbers;
  for (const auto& value : {s.min, s.max, s.mean, s.rms, s.min_nonzero}) {
    numbers.push_back(value ? general(*value, 3) : "-");
  }
  return line_of(numbers, percent(s.zeros, s.count), cat(s.nan + s.inf), name);
}

}  // namespace

void write_quick_statistics(const std::vector<shown_tensor>& tensors,
                            std::span<const std::string> names, gate& conditions,
                            const executor& where, const session& s) {
  const std::string headings =
      line_of({"min", "max", "mean", "rms", "smallest"}, "zeros", "NaN, Inf", "tensor");
  std::string text = cat(heading_of(tensors), ": ", size_text(tensors), "\n\n",
                         s.term.painted(paint::heading, headings));
  json_array all;
  const std::uint64_t bytes = bytes_to_read(tensors);
  std::optional<progress> line(std::in_place, bytes, bytes);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const shown_tensor& tensor = tensors[i];
    json_value found = std::nullopt;
    if (tensor.has_numbers()) {
      const cast_statistics stats = statistics_of(tensor, {.sums = true}, where);
      conditions.add_nonfinite(names[i], stats.nan, stats.inf, stats.count);
      line->add(tensor.info.bytes);
      found = extremes_json(stats)
                  .add({{"mean", stats.mean}, {"rms", stats.rms}, {"l2_norm", stats.l2_norm}})
                  .on_one_line();
      text += line_of(stats, names[i]);
    } else {
      conditions.add_failure(names[i], tensor.note);
      text += line_of(std::vector<std::string>(5, "-"), "-", "-", cat(names[i], ": ", tensor.note));
    }
    all.add(tensor_json(tensor).add("statistics", found));
  }
  line.reset();
  s.write({{"tensors", all}, {"fail_if", conditions.json()}},
          cat(text,
              "\nrms: root of the mean square   smallest: non-zero magnitude\n"
              "All figures are those of the finite elements.\n"));
}

// --- `fpinspect tensor --recipes` ----------------------------------------------------------------

namespace {

/// What one preset does to a tensor.
struct recipe_result : quantization {
  const recipe_preset* preset;
  double bits;         ///< of an element, with its share of the scales of its tile
  std::uint64_t lost;  ///< tiles whose scale became zero
};

/// The presets that need no state.
std::vector<const recipe_preset*> presets_without_state() {
  std::vector<const recipe_preset*> presets;
  for (const recipe_preset& p : recipe_presets) {
    if (p.rules.source == scale_source::current) presets.push_back(&p);
  }
  return presets;
}

bool is_quantized(const shown_tensor& tensor) {
  return tensor.has_numbers() && is_quantizable(tensor.format());
}

recipe_result result_of(const recipe_preset& preset, const const_matrix_view& in,
                        const executor& where) {
  const format_id to = preset.rules.code_format;
  const quantize_statistics s = statistics_by(preset, to, in, where);
  const bool saturates = options_of(preset.rules).overflow != overflow::ieee;
  const auto scale_bits = static_cast<double>(scale_bits_of(preset.rules, {in.rows, in.cols}));
  const auto elements = static_cast<double>(std::max<std::int64_t>(in.rows * in.cols, 1));
  return {{s, sqnr_of(s, saturates)},
          &preset,
          code_bits(to) + scale_bits / elements,
          lost_tiles_by(preset, in, where)};
}

constexpr const char* not_quantized =
    "not quantized: fp32, fp16, bf16 and integers of up to 16 bits are";

void add_figures(gate& conditions, const std::string& name,
                 const std::vector<recipe_result>& results) {
  if (results.empty()) return conditions.add_failure(name, not_quantized);
  const quantize_statistics& s = results.front().statistics;
  conditions.add_nonfinite(name, s.nan, s.inf, s.elements);
  for (const recipe_result& r : results) {
    conditions.add<quantization>(quantization_figures, r.preset->name,
                                 cat(name, " by ", r.preset->name), r);
  }
}

constexpr column<recipe_result> recipe_columns[] = {
    {"name", "  recipe", 22, [](auto& r) { return r.preset->name; },
     [](auto& r) { return cat("  ", r.preset->name); }},
    {"", "tile", 9, nullptr, [](auto& r) { return block_text(r.preset->rules.tile); }},
    {"code_format", "codes", 7, [](auto& r) { return name(r.preset->rules.code_format); }},
    {"", "scale", 17, nullptr, [](auto& r) { return name(r.preset->rules.scale); }},
    {"sqnr_db", "SQNR", -10, [](auto& r) { return r.ratio.db; },
     [](auto& r) { return r.ratio.text(); }},
    {"sqnr_note", "", 0, [](auto& r) { return r.ratio.note(); }},
    {"underflowed", "underflowed", -13, [](auto& r) { return r.statistics.underflowed; }},
    {"saturated", "saturated", -11, [](auto& r) { return r.statistics.saturated; }},
    {"lost_tiles", "lost tiles", -12, [](auto& r) { return r.lost; }},
    {"bits", "bits", -6, [](auto& r) { return r.bits; },
     [](auto& r) { return general(r.bits, 3); }},
};

std::string text_of(const shown_tensor& tensor, const matrix_shape& matrix,
                    const std::vector<recipe_result>& results, const terminal& term) {
  const auto& info = tensor.info;
  const auto type = info.unread.empty() ? tensor_file::name(info.type) : "not read";
  std::string text = cat(heading_text(tensor, type, term),
                         matrix != matrix_of(info) ? cat(" as ", shape_text(matrix)) : "", "\n",
                         table_heading(recipe_columns), table_lines(recipe_columns, results));
  if (results.empty()) text += cat("  ", not_quantized, "\n");
  return text + "\n";
}

}  // namespace

void write_tensor_recipes(std::span<const shown_tensor> tensors, std::span<const std::string> names,
                          gate& conditions, const executor& where, const session& s) {
  const std::vector<const recipe_preset*> presets = presets_without_state();
  std::uint64_t bytes = 0;
  for (const shown_tensor& tensor : tensors) bytes += is_quantized(tensor) ? tensor.info.bytes : 0;
  std::optional<progress> line(std::in_place, bytes, bytes * presets.size());
  json_array all;
  std::string text;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const shown_tensor& tensor = tensors[i];
    const matrix_shape matrix = judged_matrix_of(tensor);
    std::vector<recipe_result> results;  // none for a tensor that cannot be quantized
    if (is_quantized(tensor)) {
      const source_matrix in = matrix_of(tensor, matrix);
      for (const recipe_preset* preset : presets) {
        results.push_back(result_of(*preset, in.view, where));
        line->add(tensor.info.bytes);
      }
    }
    add_figures(conditions, names[i], results);
    all.add(json_object{{"name", tensor.info.name},
                        {"shape", tensor.info.shape},
                        {"matrix", extents_of(matrix)},
                        {"recipes", table_json(recipe_columns, results, true)}});
    text += text_of(tensor, matrix, results, s.term);
  }
  line.reset();  // it would mix with the text on a terminal
  s.write({{"tensors", all}, {"fail_if", conditions.json()}},
          cat(text,
              "lost tiles: their scale became zero; `fpinspect recipes` says which recipes are "
              "verified\n"));
}

}  // namespace fpinspect
