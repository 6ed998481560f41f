// quantize() by a recipe: checks that the views fit the recipe.
#include "samebits/recipe.hpp"

#include <string>

#include "backends/dispatch/calls/quantize.hpp"
#include "samebits/error.hpp"

namespace samebits {

void check(const recipe& rules) {
  const matrix_shape shape = scales_shape(0, 0, rules.tile);
  float none = 0;
  const matrix_view scales = {&none, rules.scale_format, shape.rows, shape.cols};
  backends::checked_call({nullptr, format_id::fp32, 0, 0}, {.scales = scales}, options_of(rules));
}

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
