// The detailed view of `tensor`: implementation.
#include "fpinspect/tensors/tensor_views.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/output/histogram.hpp"
#include "fpinspect/quantize/sqnr.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;

/// The results of destroyed elements: "0, Inf".
std::string lost_text(const samebits::cast_effect& effect) {
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

/// The effects of the chosen formats, in their order.
std::vector<samebits::cast_effect> effects_of(const samebits::cast_statistics& stats,
                                              std::span<const format_id> formats) {
  std::vector<samebits::cast_effect> chosen;
  for (const format_id format : formats) {
    for (const samebits::cast_effect& effect : stats.casts) {
      if (effect.format == format) chosen.push_back(effect);
    }
  }
  return chosen;
}

void write_effects(const samebits::cast_statistics& stats,
                   std::span<const samebits::cast_effect> effects, const terminal& term,
                   output& out) {
  const auto cell = [](std::string_view text) { return right(text, 10); };
  const bool any_lost =
      std::any_of(effects.begin(), effects.end(),
                  [](const samebits::cast_effect& e) { return e.destroyed() != 0; });
  out.write(term.painted(paint::heading,
                         effect_row("to", cell("underflow"), cell("subnormal"), cell("overflow"),
                                    cat(cell("SQNR"), any_lost ? "  saturating  lost to" : ""))));
  const auto share = [&](std::uint64_t part, paint color) {
    const std::string text = cell(percent(part, stats.nonzero()));
    return part == 0 ? text : term.painted(color, text);
  };
  for (const samebits::cast_effect& effect : effects) {
    const sqnr ratio = sqnr_of(effect, stats);
    std::string shown = sqnr_cell(ratio.db, ratio.exact, term);
    if (effect.destroyed() != 0) {
      const auto saturated = sqnr_db(effect.saturated_signal, effect.saturated_noise);
      shown += cat("  ", sqnr_cell(saturated, false, term), "  ", lost_text(effect));
    }
    out.write(effect_row(samebits::name(effect.format), share(effect.underflow, paint::bad),
                         share(effect.subnormal, paint::caution),
                         share(effect.overflow, paint::bad), shown));
  }
}

std::string magnitude_text(const std::optional<double>& value) {
  return value ? general(*value, 6) : "-";
}

/// "U8 codes of e4m3", "U8 values", "BF16"
std::string elements_text(const shown_tensor& tensor) {
  if (!tensor.info.unread.empty()) return "not read";
  std::string type(samebits::tensor_file::name(tensor.info.type));
  if (!tensor.has_numbers()) return type;
  if (tensor.how.integer_values) return type + " values";
  const bool own = samebits::tensor_file::format_of(tensor.info.type).has_value();
  return own ? type : cat(type, " codes of ", samebits::name(tensor.how.format));
}

void write_heading(const shown_tensor& tensor, const terminal& term, output& out) {
  out.write(cat(term.painted(paint::heading, tensor.title()), "  ", elements_text(tensor), " [",
                comma_separated(tensor.info.shape), "]  ", number_of(tensor.info.count, "element"),
                "\n"));
}

/// For each format the loss scale at which a gradient loses least, with what it loses there. Returns
/// whether one is above the usual ceiling, and fp32 needs none.
bool write_loss_scales(const samebits::cast_statistics& stats, std::span<const format_id> formats,
                       output& out) {
  if (!stats.amax || *stats.amax == 0) return false;
  bool large = false;
  out.write("  to        loss scale   underflow   without it\n");
  for (const format_id format : formats) {
    const auto scale = best_scale_log2(*stats.amax, format);
    const auto lost = [&](int log2, std::size_t width) {
      return right(percent(underflow_at(stats.binades, log2, format), stats.nonzero()), width);
    };
    if (!scale) {
      out.write(cat("  ", left(samebits::name(format), 8), right("none", 12), right("-", 12),
                    lost(0, 13), "\n"));
      continue;
    }
    const bool needed = *scale < 0 || underflow_at(stats.binades, 0, format) != 0;
    large = large || (needed && *scale > usual_ceiling_log2);
    out.write(cat("  ", left(samebits::name(format), 8),
                  right(needed ? power_text(*scale) : "not needed", 12),
                  lost(needed ? *scale : 0, 12), lost(0, 13), "\n"));
  }
  return large && underflow_at(stats.binades, 0, format_id::fp32) == 0;
}

void write_statistics(const samebits::cast_statistics& stats, std::span<const format_id> formats,
                      const terminal& term, output& out) {
  const auto count = [&](const char* what, std::uint64_t number, paint color) {
    const std::string text = cat(what, " ", number);
    return number == 0 ? text : term.painted(color, text);
  };
  out.write(cat("  amax ", magnitude_text(stats.amax), "   smallest non-zero ",
                magnitude_text(stats.min_nonzero), "\n"));
  out.write(cat("  zeros ", stats.zeros, " (", percent(stats.zeros, stats.count), ")   ",
                count("NaN", stats.nan, paint::bad), "   ", count("Inf", stats.inf, paint::bad),
                "\n"));
  write_effects(stats, effects_of(stats, formats), term, out);
}

}  // namespace

void details_writer::write(const shown_tensor& tensor, const samebits::cast_statistics& stats,
                           role what) {
  write_heading(tensor, term_, out_);
  if (tensor.has_numbers()) {
    write_statistics(stats, formats_, term_, out_);
    if (what == role::gradients && !scale_log2_) {
      if (write_loss_scales(stats, formats_, out_)) fp32_would_serve_ = true;
      any_loss_scale_ = true;
    }
    out_.write(histogram(exponents_of({&stats, 1}), formats_, term_));
    for (const samebits::cast_effect& e : effects_of(stats, formats_)) {
      any_lost_ = any_lost_ || e.destroyed() != 0;
      any_exact_ = any_exact_ || sqnr_of(e, stats).exact;
    }
  } else {
    out_.write(cat("  ", tensor.note, "\n"));
  }
  out_.write("\n");
}

void details_writer::write_legend() {
  out_.write("shares: of the finite non-zero elements, rounded to nearest even\n");
  if (scale_log2_) {
    out_.write(cat("to: what formats do to the elements times ", power_text(*scale_log2_),
                   " (--scale)\namax and chart: of the elements as stored\n"));
  }
  if (any_loss_scale_) {
    out_.write(cat(
        "loss scale: the largest power of two up to 2^127 without overflow, which loses\nleast; ",
        fp32_would_serve_ ? "above 2^24, fp32 gradients would serve; " : "",
        "--scale 2^N shows another one\n"));
  }
  if (any_exact_) out_.write("exact: no element changed; NaN that stays NaN is unchanged\n");
  if (any_lost_) {
    out_.write(
        "lost to: what lost elements became; there is no SQNR then, but that of the\n"
        "conversion that saturates\n");
  }
  out_.write("chart: elements by power of two, its label the share of the fullest column\n");
  out_.write(histogram_legend(term_));
}

}  // namespace fpinspect
