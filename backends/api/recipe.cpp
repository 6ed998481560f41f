// quantize() by a recipe: checks that the views fit the recipe.
#include "samebits/recipe.hpp"

#include <string>

#include "backends/dispatch/calls/quantize.hpp"
#include "backends/dispatch/refuse.hpp"

namespace samebits {

void check(const recipe& rules) {
  const matrix_shape shape = scales_shape(0, 0, rules.tile);
  float none = 0;
  const matrix_view scales = {&none, rules.scale_format, shape.rows, shape.cols};
  const matrix_view codes = {&none, rules.code_format, 0, 0};
  backends::checked_call({nullptr, format_id::fp32, 0, 0}, {.codes = codes, .scales = scales},
                         options_of(rules));
}

void quantize_by_recipe(const const_matrix_view& in, const quantize_outputs& outputs,
                        const recipe& rules, const executor& where) {
  refuse_if(rules.source != scale_source::current,
            "rules.source: delayed scales are a state's; give its inverse_scale in "
            "options.inverse_scales");
  const auto check = [&](const matrix_view& v, const char* which, format_id expected) {
    if (v.data == nullptr || v.format == expected) return;
    refuse(which, ": format must be the recipe's, ", expected, ", got ", v.format);
  };
  const auto check_codes = [&](const matrix_view& v, const char* which) {
    if (rules.code_format == format_id::e4m3 && v.format == format_id::e5m2) return;
    check(v, which, rules.code_format);
  };
  check_codes(outputs.codes, "outputs.codes");
  check_codes(outputs.codes_transposed, "outputs.codes_transposed");
  check(outputs.scales, "outputs.scales", rules.scale_format);
  check(outputs.scales_transposed, "outputs.scales_transposed", rules.scale_format);
  quantize(in, outputs, options_of(rules), where);
}

}  // namespace samebits
