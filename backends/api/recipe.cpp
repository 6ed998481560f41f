// quantize() by a recipe: checks that the views fit the recipe.
#include "samebits/recipe.hpp"

#include <string>

#include "samebits/error.hpp"

namespace samebits {

void quantize_by_recipe(const const_matrix_view& in, const quantize_outputs& outputs,
                        const recipe& rules, const executor& where) {
  if (rules.source != scale_source::current) {
    throw invalid_argument(
        "rules.source: delayed scales are a state's; give its inverse_scale in "
        "options.inverse_scales");
  }
  const auto check = [&](const matrix_view& v, const char* which) {
    if (v.data == nullptr || v.format == rules.scale_format) return;
    throw invalid_argument(std::string(which) + ": format must be the recipe's, " +
                           std::string(name(rules.scale_format)) + ", got " +
                           std::string(name(v.format)));
  };
  check(outputs.scales, "outputs.scales");
  check(outputs.scales_transposed, "outputs.scales_transposed");
  quantize(in, outputs, options_of(rules), where);
}

}  // namespace samebits
