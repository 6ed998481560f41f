// --fail-if of `tensor`, and of `quantize` and `tensor --recipes`: implementation.
#include "fpinspect/verdict/gate/tensor_gate.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "fpinspect/quantize/sqnr.hpp"

namespace fpinspect {

// --- --fail-if of `tensor` ------------------------------------------------------------------------

namespace {

using samebits::format_id;

constexpr std::array tensor_figures = {
    figure_spec{"underflow", "%", true},
    figure_spec{"overflow", "%", true},
    figure_spec{"sqnr", "dB", true},
    figure_spec{"nan", "%"},
    figure_spec{"inf", "%"},
    figure_spec{"bits", "", true},
    figure_spec{"loss-scale", ""},
};

bool is_about_a_format(const condition& c) {
  return c.figure == "underflow" || c.figure == "overflow" || c.figure == "sqnr";
}

void require_role(const condition& c) {
  std::vector<std::string_view> names;
  for (int r = 0; r < role_count; ++r) names.push_back(name(static_cast<role>(r)));
  if (c.subject.empty() || std::find(names.begin(), names.end(), c.subject) != names.end()) return;
  throw usage_error(cat("--fail-if: \"", c.text, "\": ", c.subject, " is none of ", joined(names)));
}

void add_format(gate& conditions, const std::string& tensor, const samebits::cast_statistics& stats,
                const samebits::cast_effect& effect) {
  const std::string_view format = samebits::name(effect.format);
  const std::string shown = cat(tensor, " in ", format);
  conditions.add_share("underflow", format, shown, effect.underflow, stats.nonzero());
  conditions.add_share("overflow", format, shown, effect.overflow, stats.nonzero());
  const sqnr saturating = {.db = sqnr_db(effect.saturated_signal, effect.saturated_noise),
                           .exact = effect.changed == 0};
  conditions.add("sqnr", format, shown, saturating.level());
}

/// The bits of each role's choice, and the loss scale.
void add_verdict(gate& conditions, const verdict& v) {
  for (const role_verdict& r : v.roles) {
    if (!r.chosen) continue;
    const double bits =
        r.met ? r.outcomes[*r.chosen].bits : std::numeric_limits<double>::infinity();
    conditions.add("bits", name(r.what), std::string(title(r.what)), bits);
  }
  if (v.loss_scale) {
    conditions.add("loss-scale", "", "gradients", std::ldexp(1.0, v.loss_scale->best.log2));
  }
}

}  // namespace

tensor_gate::tensor_gate(const std::vector<std::string>& texts, std::span<const format_id> to) {
  for (condition& c : conditions_argument("--fail-if", texts, tensor_figures)) {
    if (c.figure == "bits") require_role(c);
    if (!is_about_a_format(c)) {
      conditions_.push_back(std::move(c));
    } else if (!c.subject.empty()) {
      add(c, format_argument("--fail-if", c.subject));
    } else if (to.empty()) {
      throw usage_error(
          cat("--fail-if: \"", c.text, "\" needs a format: fp16.", c.text, ", or --to"));
    } else {
      for (const format_id format : to) {
        condition one = c;
        one.text = cat(samebits::name(format), ".", c.text);
        add(std::move(one), format);
      }
    }
  }
}

void tensor_gate::add(condition c, format_id format) {
  if (format == format_id::fp64 || format == format_id::e8m0) {
    throw usage_error(
        cat("--fail-if: ", samebits::name(format), " is not a target format of `tensor`"));
  }
  c.subject = samebits::name(format);
  conditions_.push_back(std::move(c));
  formats_.push_back(format);
}

gate tensor_gate::checked(const collected& all, const verdict& v) const {
  gate result(conditions_);
  if (conditions_.empty()) return result;
  for (std::size_t i = 0; i < all.stats.size(); ++i) {
    const samebits::cast_statistics& stats = all.stats[i];
    const std::string& tensor = all.evidence[i].name;
    result.add_nonfinite(tensor, stats.nan, stats.inf, stats.count);
    for (const samebits::cast_effect& effect : stats.casts)
      add_format(result, tensor, stats, effect);
  }
  add_verdict(result, v);
  return result;
}

// --- --fail-if of `quantize` and of `tensor --recipes` --------------------------------------------

namespace {}  // namespace

namespace {

/// @param of_recipes  whether a recipe may stand before a figure
std::vector<condition> conditions_of(const std::vector<std::string>& texts, bool of_recipes) {
  const std::array figures = {
      figure_spec{"sqnr", "dB", of_recipes}, figure_spec{"underflow", "%", of_recipes},
      figure_spec{"saturated", "%", of_recipes}, figure_spec{"nan", "%"}, figure_spec{"inf", "%"}};
  return conditions_argument("--fail-if", texts, figures);
}

}  // namespace

gate quantize_gate(const std::vector<std::string>& texts) {
  return gate(conditions_of(texts, false));
}

gate recipes_gate(const std::vector<std::string>& texts) {
  std::vector<condition> conditions = conditions_of(texts, true);
  for (condition& c : conditions) {
    if (!c.subject.empty()) c.subject = recipe_argument("--fail-if", c.subject)->name;
  }
  return gate(std::move(conditions));
}

void add_quantization(gate& conditions, std::string_view recipe, const std::string& shown,
                      const samebits::quantize_statistics& s, const sqnr& ratio) {
  const std::uint64_t nonzero = s.elements - s.zeros - s.nan - s.inf;  // and finite
  conditions.add("sqnr", recipe, shown, ratio.level());
  conditions.add_share("underflow", recipe, shown, s.underflowed, nonzero);
  conditions.add_share("saturated", recipe, shown, s.saturated, nonzero);
}

}  // namespace fpinspect
