// The verdict as JSON: implementation.
#include "fpinspect/verdict/output/verdict_text.hpp"

#include <array>
#include <string_view>

#include "fpinspect/verdict/output/verdict_sentences.hpp"

namespace fpinspect {
namespace {

std::string_view name(finding_kind kind) {
  constexpr std::array<std::string_view, 5> names = {"not_finite", "outlier", "underflows",
                                                     "still_underflows", "needs_more"};
  return names[static_cast<std::size_t>(kind)];
}

/// The figures of a choice for one tensor, and the tensor's name.
json_value worst_json(std::span<const tensor_evidence> tensors,
                      const std::optional<std::size_t>& tensor, choice c) {
  if (!tensor) return std::nullopt;
  const kept k = kept_by(*tensors[*tensor].effect(c), tensors[*tensor].nonzero);
  return json_line({{"tensor", tensors[*tensor].name},
                    {"sqnr_db", k.db},
                    {"underflow", k.underflow},
                    {"negligible", k.negligible},
                    {"overflow", k.overflow},
                    {"nonzero", k.nonzero}});
}

json_value outcome_json(const choice_outcome& outcome, std::span<const tensor_evidence> tensors) {
  const choice_spec& spec = spec_of(outcome.what);
  return json_line({{"choice", spec.name},
                    {"format", samebits::name(spec.format)},
                    {"recipe", is_recipe(outcome.what) ? std::optional(spec.recipe) : std::nullopt},
                    {"bits", outcome.bits},
                    {"tensors", outcome.tried},
                    {"failed", outcome.failed.size()},
                    {"lowest_sqnr", worst_json(tensors, outcome.lowest, outcome.what)},
                    {"largest_underflow", worst_json(tensors, outcome.lossiest, outcome.what)}});
}

json_object role_json(const role_verdict& r, std::span<const tensor_evidence> tensors) {
  const auto tried = [&](const choice_outcome& outcome) { return outcome_json(outcome, tensors); };
  return {
      {"role", name(r.what)},
      {"tensors", r.tensors.size()},
      {"judged", r.judged},
      {"values", r.values},
      {"choice", r.met ? std::optional(spec_of(r.outcomes[*r.chosen].what).name) : std::nullopt},
      {"tried", json_rows(r.outcomes, tried)}};
}

json_value loss_json(const scale_loss& loss, std::span<const tensor_evidence> tensors) {
  json_value worst = std::nullopt;
  if (const auto i = worst_gradient(tensors, loss.log2)) {
    const tensor_evidence& t = tensors[*i];
    worst = json_line({{"tensor", t.name},
                       {"underflow", loss_at(t.magnitudes, loss.log2).underflow},
                       {"nonzero", t.nonzero}});
  }
  return json_line({{"log2", loss.log2},
                    {"underflow", loss.underflow},
                    {"overflow", loss.overflow},
                    {"worst", worst}});
}

json_value loss_scale_json(const std::optional<loss_scale_verdict>& l,
                           std::span<const tensor_evidence> tensors) {
  if (!l) return std::nullopt;
  const std::string note = summary_of(*l, tensors).note;
  const auto scale = [&](const scale_loss& loss) { return loss_json(loss, tensors); };
  return json_object{{"log2", l->best.overflow == 0 ? std::optional(l->best.log2) : std::nullopt},
                     {"needed", l->needed},
                     {"smallest_log2_that_meets_the_need", l->enough},
                     {"nonzero", l->nonzero},
                     {"note", note.empty() ? std::nullopt : std::optional(note)},
                     {"limited_by", tensors[l->limit].name},
                     {"without", loss_json(l->without, tensors)},
                     {"scales", json_rows(l->neighbours, scale)}};
}

json_value tensor_json(const verdict& v, const tensor_evidence& tensor) {
  const auto c = choice_of(v, tensor);
  const choice_effect* effect = chosen_effect(v, tensor);
  const bool any = effect != nullptr;
  return json_line({{"name", tensor.name},
                    {"role", name(tensor.what)},
                    {"judged", tensor.state == judged::yes},
                    {"choice", c ? std::optional(spec_of(*c).name) : std::nullopt},
                    {"sqnr_db", any ? kept_by(*effect, tensor.nonzero).db : std::nullopt},
                    {"underflow", any ? std::optional(effect->underflow) : std::nullopt}});
}

}  // namespace

json_object verdict_json(const verdict& v, std::span<const tensor_evidence> tensors) {
  const auto finding_of = [&](const finding& f) {
    return json_line({{"kind", name(f.kind)},
                      {"tensor", tensors[f.tensor].name},
                      {"text", finding_text(f, v, tensors)}});
  };
  return {{"need", json_line({{"sqnr_db", v.wanted.db},
                              {"underflow_percent", v.wanted.underflow_percent}})},
          {"roles", json_rows(v.roles, [&](const auto& r) { return role_json(r, tensors); })},
          {"fp16_loss_scale", loss_scale_json(v.loss_scale, tensors)},
          {"findings", json_rows(v.findings, finding_of)},
          {"tensors", json_rows(tensors, [&](const auto& t) { return tensor_json(v, t); })}};
}

}  // namespace fpinspect
