// The verdict as text: roles, loss scale and the table of tensors; and as JSON.
#include "fpinspect/verdict/output/verdict_text.hpp"

namespace fpinspect {
namespace {

constexpr std::string_view below_choice = "          ";
constexpr std::string_view below_reason = "            ";

/// A line of the screen with its line break, in as many lines as the terminal needs.
std::string screen_line(std::string_view text, const terminal& term, std::string_view indent) {
  const auto width = static_cast<std::size_t>(std::clamp(term.width(), 60, 100));
  return wrapped(text, indent, width) + "\n";
}

std::string need_text(const need& wanted) {
  std::string text = need_sentence(wanted);
  const std::string_view last = "non-zero ";
  text[text.find(last) + last.size() - 1] = '\n';
  return text + "\n";
}

std::string role_text(const verdict& v, const role_verdict& r, const terminal& term) {
  const role_summary s = summary_of(v, r);
  std::string chosen = s.choice;
  if (!s.stored.empty()) chosen = cat(left(chosen, 25), s.stored);
  if (!s.bits.empty()) {
    chosen = cat(left(chosen, 25), right(s.db, 8), right(s.lost, 10), " lost",
                 right(s.bits + " bits", 11));
  }
  if (r.chosen) chosen = term.painted(paint::heading, chosen);
  std::string text =
      cat("  ", left(title(r.what), 12), right(cat(r.tensors.size()), 5), "  ", chosen, "\n");
  for (const std::string& note : {s.reason, s.rule, s.besides}) {
    if (!note.empty()) text += screen_line(cat(below_choice, note), term, below_reason);
  }
  return text;
}

/// Whether the text has a line for a scale: the best one, twice the best one, and half of it if that
/// loses more.
bool is_shown(const loss_scale_verdict& l, const scale_loss& loss) {
  const int below = l.best.log2 - loss.log2;
  return below <= 0 || (below == 1 && loss.underflow != l.best.underflow);
}

/// The sizes of all tensors, and what the need refuses; nothing if no role has a choice.
std::string all_roles_text(const verdict& v, const terminal& term) {
  const auto is_chosen = [](const role_verdict& r) { return r.chosen.has_value(); };
  if (std::ranges::none_of(v.roles, is_chosen)) return {};
  std::string text = cat("  ", left("all", 12), right(cat(v.tensors.size()), 5), "  ",
                         size_change_text(size_of(v)), "\n");
  if (const auto refused = refusal_of(v)) {
    text += screen_line(cat("  ", refusal_text(*refused, v.wanted)), term, "    ");
  }
  return text;
}

std::string loss_scale_text(const loss_scale_verdict& l, std::span<const tensor_evidence> tensors,
                            const terminal& term) {
  const loss_scale_summary s = summary_of(l, tensors);
  std::string text = cat("Loss scale for fp16 gradients: ", term.painted(paint::heading, s.head),
                         s.note.empty() ? "\n" : cat("   (", s.note, ")\n"));
  for (std::size_t i = 0; i < s.scales.size(); ++i) {
    if (i != 0 && !is_shown(l, l.neighbours[i - 1])) continue;  // the first one is no scale
    const scale_summary& one = s.scales[i];
    text += screen_line(cat("  ", left(one.scale, 8), right(one.lost, 10), " lost", one.note), term,
                        "    ");
  }
  return s.closing.empty() ? text : cat(text, "  ", s.closing, "\n");
}

std::size_t lines_of(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// At most as many findings as there is room for, but at least three.
///
/// @param room  lines
std::string findings_text(const verdict& v, const terminal& term, std::size_t room) {
  constexpr std::size_t fewest = 3;
  if (v.findings.empty()) return "Nothing else needs attention.\n";
  std::string text = term.painted(paint::heading, "Look at these") + "\n";
  for (std::size_t i = 0; i < v.findings.size(); ++i) {
    const finding& f = v.findings[i];
    const std::string one =
        screen_line(cat("  ", v.tensors[f.tensor].name, ": ", finding_text(f, v)), term, "    ");
    const std::size_t rest = i + 1 < v.findings.size() ? 1 : 0;  // the line "and 7 more"
    if (i >= fewest && lines_of(text) + lines_of(one) + rest > room) {
      return cat(text, "  and ", v.findings.size() - i, " more: --json\n");
    }
    text += one;
  }
  return text;
}

/// The name is the last column, so that long names leave the others in place.
std::string table_line(std::string_view fp16, std::string_view db, std::string_view lost,
                       std::string_view role, std::string_view name) {
  const std::string figures = cat(right(fp16, 11), right(db, 13), right(lost, 10));
  return cat(figures, name.empty() ? "" : cat("  ", left(role, 11), "  ", name), "\n");
}

std::string tensor_line(const verdict& v, const tensor_evidence& tensor) {
  const tensor_summary s = summary_of(v, tensor);
  const std::string why =
      tensor.state == judged::not_read ? cat(": ", tensor.info.unread) : std::string();
  return table_line(s.fp16, s.db, s.lost, title(tensor.what), tensor.name + why);
}

/// part / whole; "-" if whole is 0.
std::string fraction_text(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return shortest(static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

std::string verdict_text(const verdict& v, const terminal& term) {
  constexpr std::size_t screen = 24;
  constexpr std::size_t around = 4;  // the lines of the heading and the last line, with blank lines
  std::string text = need_text(v.wanted);
  for (const role_verdict& r : v.roles) text += role_text(v, r, term);
  text += all_roles_text(v, term) + "\n";
  if (v.loss_scale) text += loss_scale_text(*v.loss_scale, v.tensors, term) + "\n";
  const std::size_t used = std::min(screen, lines_of(text) + around);
  return text + findings_text(v, term, screen - used);
}

std::string tensor_table(const verdict& v, const terminal& term) {
  std::string text =
      term.painted(paint::heading, table_line("lost in", "the role's", "lost in", "", ""),
                   table_line("fp16", "choice", "it", "role", "tensor"));
  for (const std::size_t i : v.order) text += tensor_line(v, v.tensors[i]);
  return text;
}

std::string plain_table(const verdict& v) {
  std::string text;
  for (const std::size_t i : v.order) {
    const tensor_evidence& tensor = v.tensors[i];
    const scale_loss fp16 = loss_at(tensor.stats.binades, 0);
    std::string figures = summary_of(v, tensor).db;
    figures += tensor.state == judged::yes ? "\t-\t0" : "\t-\t-";
    if (const choice_effect* effect = chosen_effect(v, tensor)) {
      const auto db = effect->db();
      figures = cat(spec_of(effect->what).name, "\t", db ? shortest(*db) : "exact", "\t",
                    fraction_text(effect->underflow, effect->nonzero));
    }
    text += cat(tensor.name, "\t", title(tensor.what), "\t", tensor.info.count, "\t",
                fraction_text(fp16.underflow + fp16.overflow, tensor.stats.nonzero()), "\t",
                figures, "\n");
  }
  return text;
}

// --- JSON ----------------------------------------------------------------------------------------

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
  const choice_effect& k = *tensors[*tensor].effect(c);
  return json_line({{"tensor", tensors[*tensor].name},
                    {"sqnr_db", k.db()},
                    {"underflow", k.underflow},
                    {"negligible", k.negligible},
                    {"overflow", k.overflow},
                    {"nonzero", k.nonzero}});
}

json_value outcome_json(const choice_outcome& outcome, std::span<const tensor_evidence> tensors) {
  const choice_spec& spec = spec_of(outcome.what);
  return json_line({{"choice", spec.name},
                    {"format", name(spec.format)},
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
                       {"underflow", loss_at(t.stats.binades, loss.log2).underflow},
                       {"nonzero", t.stats.nonzero()}});
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
                    {"sqnr_db", any ? effect->db() : std::nullopt},
                    {"underflow", any ? std::optional(effect->underflow) : std::nullopt}});
}

json_value refusal_json(const verdict& v) {
  const auto refused = refusal_of(v);
  if (!refused) return std::nullopt;
  return json_line({{"role", name(refused->of)},
                    {"choice", spec_of(refused->what).name},
                    {"admitted_sqnr_db", refused->admitted_db},
                    {"text", refusal_text(*refused, v.wanted)}});
}

}  // namespace

json_object verdict_json(const verdict& v) {
  const auto finding_of = [&](const finding& f) {
    return json_line({{"kind", name(f.kind)},
                      {"tensor", v.tensors[f.tensor].name},
                      {"text", finding_text(f, v)}});
  };
  const size_change size = size_of(v);
  return {{"need", json_line({{"sqnr_db", v.wanted.db},
                              {"fraction_bits", fraction_bits_for(v.wanted.db)},
                              {"underflow_percent", v.wanted.underflow_percent}})},
          {"refused", refusal_json(v)},
          {"bytes_before", size.before},
          {"bytes_after", size.after},
          {"roles", json_rows(v.roles, [&](const auto& r) { return role_json(r, v.tensors); })},
          {"fp16_loss_scale", loss_scale_json(v.loss_scale, v.tensors)},
          {"findings", json_rows(v.findings, finding_of)},
          {"tensors", json_rows(v.tensors, [&](const auto& t) { return tensor_json(v, t); })}};
}

}  // namespace fpinspect
