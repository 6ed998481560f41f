// --fail-if of `quantize` and of `tensor --recipes`: implementation.
#include "fpinspect/quantize/quantize_gate.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "fpinspect/quantize/quantize_arguments.hpp"

namespace fpinspect {
namespace {

double as_double(std::uint64_t count) { return static_cast<double>(count); }

/// The finite elements that are not 0.
std::uint64_t nonzero(const samebits::quantize_statistics& s) {
  return s.elements - s.zeros - s.nan - s.inf;
}

}  // namespace

gate quantize_gate(const std::vector<std::string>& texts) {
  constexpr std::array figures = {figure_spec{"sqnr", "dB"}, figure_spec{"underflow", "%"},
                                  figure_spec{"saturated", "%"}, figure_spec{"nan", "%"},
                                  figure_spec{"inf", "%"}};
  return gate(conditions_argument("--fail-if", texts, figures));
}

gate recipes_gate(const std::vector<std::string>& texts) {
  constexpr std::array figures = {
      figure_spec{"sqnr", "dB", true}, figure_spec{"underflow", "%", true},
      figure_spec{"saturated", "%", true}, figure_spec{"nan", "%"}, figure_spec{"inf", "%"}};
  std::vector<condition> conditions = conditions_argument("--fail-if", texts, figures);
  for (condition& c : conditions) {
    if (!c.subject.empty()) c.subject = recipe_argument("--fail-if", c.subject).name;
  }
  return gate(std::move(conditions));
}

void add_quantization(gate& conditions, std::string_view recipe, const std::string& shown,
                      const samebits::quantize_statistics& s, const sqnr& ratio) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double none = ratio.exact || s.elements == 0 ? infinity : -infinity;
  conditions.add("sqnr", recipe, shown, ratio.db.value_or(none));
  conditions.add("underflow", recipe, shown, as_double(s.underflowed), as_double(nonzero(s)));
  conditions.add("saturated", recipe, shown, as_double(s.saturated), as_double(nonzero(s)));
}

void add_nonfinite(gate& conditions, const std::string& shown,
                   const samebits::quantize_statistics& s) {
  conditions.add("nan", "", shown, as_double(s.nan), as_double(s.elements));
  conditions.add("inf", "", shown, as_double(s.inf), as_double(s.elements));
}

}  // namespace fpinspect
