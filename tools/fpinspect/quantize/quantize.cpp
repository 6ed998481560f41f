// `fpinspect quantize`: writes a tensor as 8-bit codes with one scale per tile to a .safetensors
// file.

#include "fpinspect/checkpoint/checkpoint.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/tensors/tensor_output.hpp"
#include "fpinspect/verdict/gate/gate.hpp"
#include "samebits/text.hpp"

namespace fpinspect {
namespace {

/// A finite number >= 0, rounded to binary32.
float bound_argument(std::string_view option, std::string_view text) {
  const parse_result read = parse(format_id::fp32, text);
  constexpr std::uint64_t max_finite = 0x7F7FFFFF;
  refuse_value_if(!read.ok || read.code > max_finite, option, text,
                  "is not a finite number >= 0 in fp32");
  return std::bit_cast<float>(static_cast<std::uint32_t>(read.code));
}

std::string share(std::uint64_t part, std::uint64_t all) {
  if (part == 0 || all == 0) return cat(part);
  return cat(part, " (", general(100.0 * static_cast<double>(part) / static_cast<double>(all), 3),
             " %)");
}

/// Codes and scales of one tile shape: of the source, or of its transpose.
struct output_shape {
  std::string suffix;  ///< of the tensors' names
  bool wanted;
  matrix_shape codes;
  matrix_shape scales;
};

/// The options in place of --recipe.
quantize_options& add_tiles_and_scales(option_list& add) {
  auto& o = add.make<quantize_options>();
  add.fill("--tile", o.tile, tile_argument,
           "Tile: 1xG, Gx1, GxG (G 16 to 256), row, column or tensor", "1x128");
  add.fill("--scale-rule", o.scale, enumerator_argument<scale_rule>,
           "Scale rules: " + names_of<scale_rule>(), "te");
  add.fill("--eps", o.eps, bound_argument, "Minimum amax of a tile", "0");
  add.fill("--upper-bound", o.upper_bound, bound_argument,
           "Largest amax of a tile (default: none)");
  add_enumerator(add, "--nonfinite", o.nonfinite, "te");
  return o;
}

class quantize_command final : public command {
  checkpoint_files files_{add, tensor_help, "FILE.safetensors, or - for standard output"};
  std::optional<format_id>& asked_ = add.optional_value(
      "--to",
      one_of({format_id::e4m3, format_id::e5m2, format_id::e2m1, format_id::e2m3, format_id::e3m2}),
      "e4m3, e5m2, e2m1, e2m3 or e3m2 (default with --recipe: its own)");
  quantize_options& options_ = add_tiles_and_scales(add);
  const recipe_preset*& preset_ =
      add.value("--recipe", recipe_argument, "A preset of `recipes` in their place");
  text_list& outputs_ = add.list("--outputs", "row, col, transposed (default: row)");
  bool& transposed_ = add.flag("--transposed", "Write codes_t and scales_t as well");
  gate& conditions_ = add.list(
      "--fail-if",
      [](const std::vector<std::string>& texts) { return quantization_gate(texts, false); },
      "Exit code 1 if: 'sqnr<30dB', 'underflow>1%', 'saturated>0', 'nan>0', ...");
  std::string& from_ = add_from(add);
  std::string& backend_ = add.text("--backend", "Where to compute (default: the best here)");
  std::string& whole_ =
      files_.add_whole(add, {"--outputs", "--transposed", "--fail-if", "--from", "--backend"});
  checkpoint_choices choices_{add};
  layout& names_ =
      add_enumerator<layout>(add, "--layout", "compressed-tensors", "Names of scales: ");
  convert_options& rule_ = add_rounding_rule(add, "saturate");

 public:
  explicit quantize_command(option_list& list) : command(list) {
    add.need({"--layout"}, "-o");
    for (const char* choice : {"--map", "--by-verdict"}) {
      add.exclude(choice, {"--recipe", "--to", "--tile", "--scale-rule", "--eps", "--upper-bound",
                           "--nonfinite", "--overflow"});
    }
    add.exclude("--recipe",
                {"--tile", "--scale-rule", "--eps", "--upper-bound", "--nonfinite", "--overflow"});
    add.exclude("--transposed", {"--outputs"});
    add.refuse_json_beside("OUT", files_.out);
  }

  void run(const session& s) {
    complete_options();
    if (files_.is_whole(whole_)) return run_whole(s);
    const tensor_target target("OUT", files_.out, container::safetensors);
    refuse_if(target.kind() != container::safetensors,
              "OUT: codes and scales are several tensors, which only .safetensors holds");
    const source_tensor source = open_source("IN", files_.in, "--from", from_);
    require_quantizable(source.format(), files_.in);
    const quantize_statistics statistics = quantized(source, target, s.out);
    const std::string& stored = source.info.name.empty() ? files_.in : source.info.name;
    const std::string name = escape(stored, 256);
    const sqnr ratio = sqnr_of(statistics, options_.overflow != overflow::ieee);
    conditions_.add<quantization>(quantization_figures, "", name, {statistics, ratio});
    conditions_.add_nonfinite(name, statistics.nan, statistics.inf, statistics.elements);
    if (s.json) {
      s.write_json(json_of(source, statistics, ratio).add("fail_if", conditions_.json()));
    } else {
      s.report(report(target, source, statistics, ratio), target.is_standard_output());
    }
    conditions_.check();
  }

 private:
  /// Quantizes the weights of all files.
  void run_whole(const session& s) {
    const std::vector<std::string> files = files_.all();
    require_unquantized(files);
    std::optional<quantization_rules> rules;
    if (preset_ != nullptr) {
      rules = rules_of("--recipe", *preset_, to_, rule_);
    } else if (asked_) {
      rules = {options_, to_, scale_format_};
    }
    const auto plan = plan_quantize(choices_, checkpoint_tensors(files), rules, names_, rule_);
    run_checkpoint(whole_, files, plan, {.names = names_, .where = all_threads()}, s);
  }

  /// Interprets the options that depend on each other.
  void complete_options() {
    quantize_options& o = options_;
    refuse_if(!asked_ && preset_ == nullptr && !choices_.of_each(),
              "--to is required: e4m3, e5m2, e2m1, e2m3 or e3m2");
    to_ = asked_.value_or(format_id::e4m3);
    if (preset_ != nullptr) {
      const format_id own = preset_->rules.code_format;
      refuse_if(asked_ && own != format_id::e4m3, "--to: ", preset_->name, " has codes in ", own);
      to_ = asked_.value_or(own);
      o = options_of(preset_->rules);
      scale_format_ = preset_->rules.scale_format;
    } else {
      if (has_two_levels(o.scale)) scale_format_ = format_id::e4m3;
      if (o.upper_bound == 0) throw usage_error("--upper-bound: must be above 0");
      if (o.upper_bound < o.eps) throw usage_error("--upper-bound: is below --eps");
      o.overflow = rule_.overflow;
    }
    o.rounding = rule_.rounding;
    refuse_if(o.rounding != rounding::nearest_even && o.rounding != rounding::stochastic,
              "--rounding: quantize takes nearest_even or stochastic, not ", o.rounding);
    o.nan = rule_.nan;
    o.random = rule_.random;
    where_ = quantizing_backend_argument(backend_);
    where_.threads = 0;  // all; results do not depend on their number
    row_ = outputs_.empty();
    for (const std::string& output : outputs_) {
      constexpr std::string_view names[] = {"row", "col", "transposed"};
      bool* const wanted[] = {&row_, &column_, &transposed_};
      const auto found = std::ranges::find(names, output);
      if (found == std::end(names)) refuse_name("--outputs", output, joined(names));
      *wanted[found - names] = true;
    }
  }

  /// The metadata of the file, for `dequantize`, `diff` and users.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> metadata() const {
    const quantize_options& o = options_;
    std::vector<std::pair<std::string, std::string>> all = {
        {"samebits.block", block_text(o.tile)},
        {"samebits.scale_rule", std::string(name(o.scale))},
        {"samebits.rule",
         cat("eps ", shortest(double{o.eps}), ", upper bound ", shortest(double{o.upper_bound}),
             ", ", o.nonfinite, ", ", o.scale_overflow, ", ",
             rule_text({o.rounding, o.overflow, o.nan}), ", ",
             preset_ == nullptr ? "current" : name(preset_->rules.source), " scales")}};
    if (preset_ != nullptr) all.emplace_back("samebits.recipe", std::string(preset_->name));
    return all;
  }

  [[nodiscard]] std::array<output_shape, 3> outputs_of(const matrix_shape& shape) const {
    const tile_shape tile = options_.tile;
    const matrix_shape tiles = scales_shape(shape.rows, shape.cols, tile);
    return {{{"", row_, shape, tiles},
             {"_col", column_, shape, scales_shape(shape.rows, shape.cols, {tile.cols, tile.rows})},
             {"_t", transposed_, {shape.cols, shape.rows}, {tiles.cols, tiles.rows}}}};
  }

  /// Quantizes the tensor and writes OUT.
  [[nodiscard]] quantize_statistics quantized(const source_tensor& source,
                                              const tensor_target& target, output& out) {
    const source_matrix in = matrix_of(source);
    const float fresh = 1.0f;  // S in the first step of a delayed recipe
    quantize_options options = options_;
    if (preset_ != nullptr && preset_->rules.source == scale_source::delayed) {
      options.inverse_scales = view_of_codes(format_id::fp32, &fresh, 1, 1);
    }
    quantize_statistics statistics;
    std::vector<owned_matrix> codes;
    std::vector<owned_matrix> scales;
    const std::array all = outputs_of({in.view.rows, in.view.cols});
    for (const output_shape& one : all) {  // the first one is computed for its statistics
      const bool computed = one.wanted || one.suffix.empty();
      codes.emplace_back(to_, computed ? one.codes : matrix_shape{});
      scales.emplace_back(scale_format_, computed ? one.scales : matrix_shape{});
    }
    float tensor_scale = 0;
    quantize_outputs outputs = {
        .codes = codes[0].view(), .scales = scales[0].view(), .statistics = &statistics};
    if (has_two_levels(options.scale)) {
      outputs.tensor_scale = view_of_codes(format_id::fp32, &tensor_scale, 1, 1);
    }
    if (transposed_) {
      outputs.codes_transposed = codes[2].view();
      outputs.scales_transposed = scales[2].view();
    }
    if (scales[0].bytes.empty()) options.inverse_scales = {};
    samebits::quantize(in.view, outputs, options, where_);
    if (scale_format_ == format_id::e4m3) {
      lost_ = lost_tiles(in.view, scales[0].view(), options.tile);
    }
    options.tile = {options.tile.cols, options.tile.rows};
    if (column_) {
      samebits::quantize(in.view, {.codes = codes[1].view(), .scales = scales[1].view()}, options,
                         where_);
    }

    std::vector<named_tensor> tensors;
    if (has_two_levels(options.scale)) {
      tensors.push_back(
          {"tensor_scale", dtype::f32, {1, 1}, std::as_bytes(std::span(&tensor_scale, 1))});
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].wanted) tensors.push_back(scales[i].tensor("scales" + all[i].suffix));
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].wanted) tensors.push_back(codes[i].tensor("codes" + all[i].suffix));
    }
    target.write(tensors, metadata(), out);
    return statistics;
  }

  [[nodiscard]] json_object json_of(const source_tensor& source, const quantize_statistics& s,
                                    const sqnr& ratio) const {
    const quantize_options& o = options_;
    const output_shape row = outputs_of(matrix_of(source.info))[0];
    const bool has_preset = preset_ != nullptr;  // else options in its place
    const bool named = !where_.backend.empty();  // else the call chooses the backend
    json_object document = {{"input", files_.in},
                            {"output", files_.out},
                            {"from", type_text(source.info, source.how)},
                            {"to", name(to_)},
                            {"recipe", has_preset ? std::optional(preset_->name) : std::nullopt},
                            {"block", extents_of({o.tile.rows, o.tile.cols})},
                            {"scale_rule", name(o.scale)},
                            {"eps", double{o.eps}},
                            {"upper_bound", double{o.upper_bound}},
                            {"nonfinite", name(o.nonfinite)}};
    document.add(rule_json({o.rounding, o.overflow, o.nan, o.random}));
    return document.add({{"row", row_},
                         {"column", column_},
                         {"transposed", transposed_},
                         {"scale_format", name(scale_format_)},
                         {"backend", named ? std::optional(where_.backend) : std::nullopt},
                         {"codes_shape", extents_of(row.codes)},
                         {"scales_shape", extents_of(row.scales)},
                         {"sqnr_db", ratio.db},
                         {"sqnr_note", ratio.note()},
                         {"underflowed", s.underflowed},
                         {"saturated", s.saturated},
                         {"lost_tiles", lost_},
                         {"statistics", json_object{{"count", s.elements},
                                                    {"zeros", s.zeros},
                                                    {"nan", s.nan},
                                                    {"inf", s.inf},
                                                    {"amax", double{s.amax}},
                                                    {"min_nonzero", double{s.min_nonzero}},
                                                    {"signal", s.signal},
                                                    {"noise", s.noise}}}});
  }

  [[nodiscard]] std::string report(const tensor_target& target, const source_tensor& source,
                                   const quantize_statistics& s, const sqnr& ratio) const {
    const quantize_options& o = options_;
    std::string text = cat(target.shown(), ":");
    for (const output_shape& one : outputs_of(matrix_of(source.info))) {
      const bool first = one.suffix.empty();
      if (!first && !one.wanted) continue;
      text += cat(first ? " codes" : ", codes", one.suffix, " ", shape_text(one.codes),
                  first ? cat(" ", to_) : "", ", scales", one.suffix, " ", shape_text(one.scales),
                  first ? cat(" ", scale_format_) : "");
    }
    text += "\n";
    if (preset_ != nullptr) {
      text += cat("  recipe ", preset_->name, ", ", preset_->verified, " against the library\n");
    }
    const std::string why = ratio.reason.empty() ? "" : cat(" (", ratio.reason, ")");
    return cat(text, "  from ", type_text(source.info, source.how), ", block ", block_text(o.tile),
               ", ", o.scale, ", ", o.rounding, ", ", o.overflow, "\n  SQNR ", ratio.text(), why,
               "   underflowed ", share(s.underflowed, s.elements), "   saturated ",
               share(s.saturated, s.elements),
               has_two_levels(o.scale) ? cat("   lost tiles ", lost_) : "", "\n  ",
               number_of(s.elements, "element"), "   zeros ", share(s.zeros, s.elements), "   NaN ",
               s.nan, "   Inf ", s.inf, "\n  amax ", general(double{s.amax}, 6),
               "   smallest non-zero ", general(double{s.min_nonzero}, 6), "\n");
  }

  format_id to_ = format_id::e4m3;
  format_id scale_format_ = format_id::fp32;
  executor where_;
  std::uint64_t lost_ = 0;  ///< tiles whose scale became zero
  bool row_ = true;         ///< row, column: whether these outputs are wanted
  bool column_ = false;
};

const registered quantize_here("quantize", "Write a tensor as 8-bit codes with a scale per tile",
                               50, run_of<quantize_command>);

}  // namespace
}  // namespace fpinspect
