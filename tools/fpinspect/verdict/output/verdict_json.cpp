// The verdict as JSON: implementation.
#include "fpinspect/verdict/output/verdict_json.hpp"

#include <array>
#include <string_view>

#include "fpinspect/verdict/output/verdict_sentences.hpp"

namespace fpinspect {
namespace {

using layout = json_writer::layout;

std::string_view name(finding_kind kind) {
  constexpr std::array<std::string_view, 5> names = {"not_finite", "outlier", "underflows",
                                                     "still_underflows", "needs_more"};
  return names[static_cast<std::size_t>(kind)];
}

void write_choice(json_writer& json, choice c, double bits) {
  const choice_spec& spec = spec_of(c);
  json.member("choice", spec.name);
  json.member("format", samebits::name(spec.format));
  json.member("recipe", is_recipe(c) ? std::optional<std::string_view>(spec.recipe) : std::nullopt);
  json.member("bits", bits);
}

/// The figures of a choice for one tensor, and the tensor's name.
void write_worst(json_writer& json, const char* key, std::span<const tensor_evidence> tensors,
                 const std::optional<std::size_t>& tensor, choice c) {
  json.key(key);
  if (!tensor) return json.value(std::nullopt);
  const kept k = kept_by(*tensors[*tensor].effect(c), tensors[*tensor].nonzero);
  json.begin_object(layout::one_line);
  json.member("tensor", tensors[*tensor].name);
  json.member("sqnr_db", k.db);
  json.member("underflow", k.underflow);
  json.member("negligible", k.negligible);
  json.member("overflow", k.overflow);
  json.member("nonzero", k.nonzero);
  json.end_object();
}

void write_role(json_writer& json, const role_verdict& r,
                std::span<const tensor_evidence> tensors) {
  json.begin_object();
  json.member("role", name(r.what));
  json.member("tensors", r.tensors.size());
  json.member("judged", r.judged);
  json.member("values", r.values);
  json.member("choice",
              r.met ? std::optional(spec_of(r.outcomes[*r.chosen].what).name) : std::nullopt);
  json.key("tried");
  json.begin_array();
  for (const choice_outcome& outcome : r.outcomes) {
    json.begin_object(layout::one_line);
    write_choice(json, outcome.what, outcome.bits);
    json.member("tensors", outcome.tried);
    json.member("failed", outcome.failed.size());
    write_worst(json, "lowest_sqnr", tensors, outcome.lowest, outcome.what);
    write_worst(json, "largest_underflow", tensors, outcome.lossiest, outcome.what);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void write_loss(json_writer& json, const scale_loss& loss,
                std::span<const tensor_evidence> tensors) {
  json.begin_object(layout::one_line);
  json.member("log2", loss.log2);
  json.member("underflow", loss.underflow);
  json.member("overflow", loss.overflow);
  json.key("worst");
  if (const auto worst = worst_gradient(tensors, loss.log2)) {
    const tensor_evidence& t = tensors[*worst];
    json.begin_object(layout::one_line);
    json.member("tensor", t.name);
    json.member("underflow", loss_at(t.magnitudes, loss.log2).underflow);
    json.member("nonzero", t.nonzero);
    json.end_object();
  } else {
    json.value(std::nullopt);
  }
  json.end_object();
}

void write_loss_scale(json_writer& json, const std::optional<loss_scale_verdict>& l,
                      std::span<const tensor_evidence> tensors) {
  json.key("fp16_loss_scale");
  if (!l) return json.value(std::nullopt);
  json.begin_object();
  json.member("log2", l->best.overflow == 0 ? std::optional(l->best.log2) : std::nullopt);
  json.member("needed", l->needed);
  json.member("smallest_log2_that_meets_the_need", l->enough);
  json.member("nonzero", l->nonzero);
  const std::string note = summary_of(*l, tensors).note;
  json.member("note", note.empty() ? std::nullopt : std::optional(note));
  json.member("limited_by", tensors[l->limit].name);
  json.key("without");
  write_loss(json, l->without, tensors);
  json.key("scales");
  json.begin_array();
  for (const scale_loss& loss : l->neighbours) write_loss(json, loss, tensors);
  json.end_array();
  json.end_object();
}

void write_tensor(json_writer& json, const verdict& v, const tensor_evidence& tensor) {
  json.begin_object(layout::one_line);
  json.member("name", tensor.name);
  json.member("role", name(tensor.what));
  json.member("judged", tensor.state == judged::yes);
  const auto c = choice_of(v, tensor);
  json.member("choice", c ? std::optional(spec_of(*c).name) : std::nullopt);
  const choice_effect* effect = chosen_effect(v, tensor);
  json.member("sqnr_db", effect == nullptr ? std::nullopt : kept_by(*effect, tensor.nonzero).db);
  json.member("underflow", effect == nullptr ? std::nullopt : std::optional(effect->underflow));
  json.end_object();
}

}  // namespace

void write_verdict_json(json_writer& json, const verdict& v,
                        std::span<const tensor_evidence> tensors) {
  json.begin_object();
  json.key("need");
  json.begin_object(layout::one_line);
  json.member("sqnr_db", v.wanted.db);
  json.member("underflow_percent", v.wanted.underflow_percent);
  json.end_object();
  json.key("roles");
  json.begin_array();
  for (const role_verdict& r : v.roles) write_role(json, r, tensors);
  json.end_array();
  write_loss_scale(json, v.loss_scale, tensors);
  json.key("findings");
  json.begin_array();
  for (const finding& f : v.findings) {
    json.begin_object(layout::one_line);
    json.member("kind", name(f.kind));
    json.member("tensor", tensors[f.tensor].name);
    json.member("text", finding_text(f, v, tensors));
    json.end_object();
  }
  json.end_array();
  json.key("tensors");
  json.begin_array();
  for (const tensor_evidence& tensor : tensors) write_tensor(json, v, tensor);
  json.end_array();
  json.end_object();
}

}  // namespace fpinspect
