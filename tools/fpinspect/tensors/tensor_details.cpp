// One tensor in the detailed view of `tensor` and in its JSON: implementation.
#include "fpinspect/tensors/tensor_views.hpp"

#include "fpinspect/output/histogram.hpp"

namespace fpinspect {
namespace {

/// The results of destroyed elements: "0, Inf".
std::string lost_text(const cast_effect& effect) {
  std::vector<std::string_view> lost;
  if (effect.underflow != 0) lost.push_back("0");
  if (effect.to_inf != 0) lost.push_back("Inf");
  if (effect.to_nan != 0) lost.push_back("NaN");
  if (effect.to_max != 0) lost.push_back("max");
  return joined(lost);
}

/// A cell of 10 characters. The dash may have more than one byte.
std::string sqnr_cell(const std::optional<double>& db, bool exact, const terminal& term) {
  constexpr std::size_t width = 10;
  if (db || exact) return right(sqnr{db, exact, {}}.text(), width);
  return std::string(width - 1, ' ') + (term.characters() == charset::ascii ? "-" : "–");
}

std::string effect_row(std::string_view format, std::string_view underflow,
                       std::string_view subnormal, std::string_view overflow,
                       std::string_view sqnr) {
  return cat("  ", left(format, 8), "  ", underflow, "  ", subnormal, "  ", overflow, "  ", sqnr,
             "\n");
}

const cast_effect& effect_of(const cast_statistics& stats, format_id format) {
  return *std::ranges::find(stats.casts, format, &cast_effect::format);
}

void write_effects(const cast_statistics& stats, std::span<const format_id> formats,
                   const session& s) {
  const auto cell = [](std::string_view text) { return right(text, 10); };
  const bool any_lost = std::ranges::any_of(
      formats, [&](format_id format) { return effect_of(stats, format).destroyed() != 0; });
  s.out.write(s.term.painted(
      paint::heading, effect_row("to", cell("underflow"), cell("subnormal"), cell("overflow"),
                                 cat(cell("SQNR"), any_lost ? "  saturating  lost to" : ""))));
  const auto share = [&](std::uint64_t part, paint color) {
    const std::string text = cell(percent(part, stats.nonzero()));
    return part == 0 ? text : s.term.painted(color, text);
  };
  for (const format_id format : formats) {
    const cast_effect& effect = effect_of(stats, format);
    const sqnr ratio = sqnr_of(effect, stats);
    std::string shown = sqnr_cell(ratio.db, ratio.exact, s.term);
    if (effect.destroyed() != 0) {
      const auto saturated = sqnr_db(effect.saturated_signal, effect.saturated_noise);
      shown += cat("  ", sqnr_cell(saturated, false, s.term), "  ", lost_text(effect));
    }
    s.out.write(effect_row(name(format), share(effect.underflow, paint::bad),
                           share(effect.subnormal, paint::caution),
                           share(effect.overflow, paint::bad), shown));
  }
}

/// "U8 codes of e4m3", "U8 values", "BF16"
std::string elements_text(const shown_tensor& tensor) {
  if (!tensor.info.unread.empty()) return "not read";
  std::string type(tensor_file::name(tensor.info.type));
  if (!tensor.has_numbers()) return type;
  if (tensor.how.integer_values) return type + " values";
  const bool own = tensor_file::format_of(tensor.info.type).has_value();
  return own ? type : cat(type, " codes of ", tensor.how.format);
}

/// For each format the loss scale at which a gradient loses least, with what it loses there. Returns
/// whether one is above the usual ceiling, and fp32 needs none.
bool write_loss_scales(const cast_statistics& stats, std::span<const format_id> formats,
                       const session& s) {
  if (!stats.amax || *stats.amax == 0) return false;
  bool large = false;
  s.out.write("  to        loss scale   underflow   without it\n");
  for (const format_id format : formats) {
    const auto scale = best_scale_log2(*stats.amax, format);
    const auto lost = [&](int log2, std::size_t width) {
      return right(percent(underflow_at(stats.binades, log2, format), stats.nonzero()), width);
    };
    const bool needed = scale && (*scale < 0 || underflow_at(stats.binades, 0, format) != 0);
    large = large || (needed && *scale > usual_ceiling_log2);
    const std::string text = !scale ? "none" : needed ? power_text(*scale) : "not needed";
    s.out.write("  ", left(name(format), 8), right(text, 12),
                scale ? lost(needed ? *scale : 0, 12) : right("-", 12), lost(0, 13), "\n");
  }
  return large && underflow_at(stats.binades, 0, format_id::fp32) == 0;
}

void write_statistics(const cast_statistics& stats, std::span<const format_id> formats,
                      const session& s) {
  const auto count = [&](const char* what, std::uint64_t number, paint color) {
    const std::string text = cat(what, " ", number);
    return number == 0 ? text : s.term.painted(color, text);
  };
  s.out.write("  amax ", number_text(stats.amax), "   smallest non-zero ",
              number_text(stats.min_nonzero), "\n");
  s.out.write("  zeros ", stats.zeros, " (", percent(stats.zeros, stats.count), ")   ",
              count("NaN", stats.nan, paint::bad), "   ", count("Inf", stats.inf, paint::bad),
              "\n");
  write_effects(stats, formats, s);
}

}  // namespace

void write_details(std::span<const detailed_tensor> tensors, std::span<const format_id> formats,
                   std::optional<int> scale_log2, const session& s) {
  bool any_lost = false;
  bool any_exact = false;
  bool any_loss_scale = false;
  bool fp32_would_serve = false;  // a loss scale is above what loss scalers usually reach
  for (const auto& [tensor, evidence] : tensors) {
    const cast_statistics& stats = evidence.stats;
    s.out.write(heading_text(tensor, elements_text(tensor), s.term), "  ",
                number_of(tensor.info.count, "element"), "\n");
    if (!tensor.has_numbers()) {
      s.out.write("  ", tensor.note, "\n\n");
      continue;
    }
    write_statistics(stats, formats, s);
    if (evidence.what == role::gradients && !scale_log2) {
      if (write_loss_scales(stats, formats, s)) fp32_would_serve = true;
      any_loss_scale = true;
    }
    s.out.write(histogram(exponents_of({&evidence, 1}), formats, s.term) + "\n");
    for (const format_id format : formats) {
      const cast_effect& e = effect_of(stats, format);
      any_lost = any_lost || e.destroyed() != 0;
      any_exact = any_exact || sqnr_of(e, stats).exact;
    }
  }
  s.out.write("shares: of the finite non-zero elements, rounded to nearest even\n");
  if (scale_log2) {
    s.out.write("to: what formats do to the elements times ", power_text(*scale_log2),
                " (--scale)\namax and chart: of the elements as stored\n");
  }
  if (any_loss_scale) {
    s.out.write(
        "loss scale: the largest power of two up to 2^127 without overflow, which loses\nleast; ",
        fp32_would_serve ? "above 2^24, fp32 gradients would serve; " : "",
        "--scale 2^N shows another one\n");
  }
  if (any_exact) s.out.write("exact: no element changed; NaN that stays NaN is unchanged\n");
  if (any_lost) {
    s.out.write(
        "lost to: what lost elements became; there is no SQNR then, but that of the\n"
        "conversion that saturates\n");
  }
  s.out.write("chart: elements by power of two, its label the share of the fullest column\n",
              histogram_legend(s.term));
}

// --- JSON ----------------------------------------------------------------------------------------

namespace {

/// The code of a value in the elements' format, which holds it exactly. Integers have no code.
json_value code_json(const element_reading& how, const std::optional<double>& value) {
  if (!value || how.integer_values) return std::nullopt;
  const auto bits = std::bit_cast<std::uint64_t>(*value);
  return code_text(how.format, convert_code(format_id::fp64, how.format, bits).code);
}

json_value effect_json(const cast_effect& effect, const cast_statistics& stats) {
  const sqnr ratio = sqnr_of(effect, stats);
  return json_line({{"underflow", effect.underflow},
                    {"subnormal", effect.subnormal},
                    {"overflow", effect.overflow},
                    {"to_inf", effect.to_inf},
                    {"to_nan", effect.to_nan},
                    {"to_max", effect.to_max},
                    {"changed", effect.changed},
                    {"sqnr_db", ratio.db},
                    {"sqnr_note", ratio.note()},
                    {"signal", effect.signal},
                    {"noise", effect.noise},
                    {"saturated_sqnr_db", sqnr_db(effect.saturated_signal, effect.saturated_noise)},
                    {"saturated_signal", effect.saturated_signal},
                    {"saturated_noise", effect.saturated_noise}});
}

json_value loss_scale_json(const cast_statistics& stats, format_id format) {
  const auto scale = best_scale_log2(*stats.amax, format);
  if (!scale) return std::nullopt;
  return json_line({{"log2", *scale}, {"underflow", underflow_at(stats.binades, *scale, format)}});
}

json_object statistics_json(const element_reading& how, const cast_statistics& stats,
                            std::span<const format_id> formats) {
  json_object effects;
  json_object loss_scales;
  json_object exponents;
  for (const format_id format : formats) {
    effects.add(name(format), effect_json(effect_of(stats, format), stats));
    if (stats.amax.value_or(0) == 0) continue;
    loss_scales.add(name(format), loss_scale_json(stats, format));
  }
  for (const auto& [exponent, counts] : stats.binades) {
    exponents.add(std::to_string(exponent), counts.all);
  }
  return {{"zeros", stats.zeros},
          {"nan", stats.nan},
          {"inf", stats.inf},
          {"amax", stats.amax},
          {"amax_code", code_json(how, stats.amax)},
          {"min_nonzero", stats.min_nonzero},
          {"min_nonzero_code", code_json(how, stats.min_nonzero)},
          {"formats", effects},
          {"fp16_loss_scale_log2", best_scale_log2(stats.amax.value_or(0), format_id::fp16)},
          {"loss_scales", loss_scales},
          {"exponents", exponents.on_one_line()}};
}

json_object no_statistics_json(const std::string& note) {
  return {{"zeros", std::nullopt},
          {"nan", std::nullopt},
          {"inf", std::nullopt},
          {"amax", std::nullopt},
          {"min_nonzero", std::nullopt},
          {"formats", json_object()},
          {"fp16_loss_scale_log2", std::nullopt},
          {"note", note}};
}

json_value from_json(const shown_tensor& tensor) {
  return tensor.has_numbers() ? std::optional(type_text(tensor.info, tensor.how)) : std::nullopt;
}

}  // namespace

json_object tensor_json(const shown_tensor& tensor) {
  return {{"name", tensor.info.name},
          {"from", from_json(tensor)},
          {"shape", tensor.info.shape},
          {"count", tensor.info.count}};
}

json_object details_json(const shown_tensor& tensor, const cast_statistics& stats,
                         std::span<const format_id> formats) {
  const tensor_info& info = tensor.info;
  json_object members = {
      {"name", info.name},
      {"dtype", info.unread.empty() ? std::optional(tensor_file::name(info.type)) : std::nullopt},
      {"from", from_json(tensor)},
      {"shape", info.shape},
      {"count", info.count}};
  return members.add(tensor.has_numbers() ? statistics_json(tensor.how, stats, formats)
                                          : no_statistics_json(tensor.note));
}

}  // namespace fpinspect
