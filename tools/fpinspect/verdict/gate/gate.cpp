// The conditions of --fail-if: implementation.
#include "fpinspect/verdict/gate/gate.hpp"

namespace fpinspect {
namespace {

bool is_upper_limit(relation how) { return how == relation::greater || how == relation::at_least; }

/// A value in the unit of a condition's limit: "31.2 %".
std::string figure_text(double value, const std::string& unit) {
  if (std::isinf(value)) return value < 0 ? "no value" : "exact";
  const bool count = value == std::floor(value) && value < 1e15;
  return cat(count ? fixed(value, 0) : general(value, 4), unit.empty() ? "" : " ", unit);
}

}  // namespace

void gate::add(std::string_view figure, std::string_view subject, const std::string& tensor,
               const figure_value& found) {
  for (outcome& o : outcomes_) {
    const condition& c = o.of;
    if (c.figure != figure || (!c.subject.empty() && c.subject != subject)) continue;
    if (!c.holds(found.value, found.whole)) continue;
    double shown = found.value;
    if (c.limit.unit == "%") shown = found.whole > 0 ? 100.0 * found.value / found.whole : 0;
    const bool worse = is_upper_limit(c.how) ? shown > o.value : shown < o.value;
    if (o.failed++ != 0 && !worse) continue;
    o.worst = tensor;
    o.value = shown;
  }
}

json_value gate::json() const {
  return json_rows(outcomes_, [](const outcome& o) {
    const bool any = o.failed != 0;
    return json_line({{"condition", o.of.text},
                      {"failed", o.failed},
                      {"worst", any ? std::optional(o.worst) : std::nullopt},
                      {"value", any ? std::optional(o.value) : std::nullopt}});
  });
}

void gate::check() const {
  std::string message;
  const auto add_part = [&](const std::string& part) {
    message += cat(message.empty() ? "" : "; ", part);
  };
  for (const outcome& o : outcomes_) {
    if (o.failed == 0) continue;
    add_part(cat("--fail-if ", o.of.text, ": ",
                 o.failed == 1 ? std::string() : cat(o.failed, " times, worst "), o.worst, ": ",
                 figure_text(o.value, o.of.limit.unit)));
  }
  if (incomparable_ != 0) {
    add_part(cat("--fail-if: ", incomparable_,
                 incomparable_ == 1 ? " tensor is not measured: " : " tensors are not measured: ",
                 first_incomparable_));
  }
  if (!message.empty()) throw check_failed(message);
}

gate quantization_gate(const std::vector<std::string>& texts, bool of_recipes) {
  std::vector<figure_spec> figures(std::begin(quantization_figures),
                                   std::end(quantization_figures));
  for (figure_spec& f : figures) f.has_subject = of_recipes;
  figures.insert(figures.end(), nonfinite_figures.begin(), nonfinite_figures.end());
  std::vector<condition> conditions = conditions_argument(texts, figures);
  for (condition& c : conditions) {
    if (!c.subject.empty()) c.subject = recipe_argument("--fail-if", c.subject)->name;
  }
  return gate(conditions);
}

}  // namespace fpinspect
