// --fail-if of `quantize` and of `tensor --recipes`: implementation.
#include "fpinspect/quantize/quantize_gate.hpp"

#include <array>
#include <utility>

#include "fpinspect/quantize/quantize_arguments.hpp"

namespace fpinspect {
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
    if (!c.subject.empty()) c.subject = recipe_argument("--fail-if", c.subject).name;
  }
  return gate(std::move(conditions));
}

void add_quantization(gate& conditions, std::string_view recipe, const std::string& shown,
                      const samebits::quantize_statistics& s, const sqnr& ratio) {
  const std::uint64_t nonzero = s.elements - s.zeros - s.nan - s.inf;
  conditions.add("sqnr", recipe, shown, ratio.level());
  conditions.add_count("underflow", recipe, shown, s.underflowed, nonzero);
  conditions.add_count("saturated", recipe, shown, s.saturated, nonzero);
}

}  // namespace fpinspect
