// Recipes through the C interface.
#include "samebits/recipe.hpp"

#include <string>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/arguments/options.hpp"
#include "backends/c_api/quantize/quantize_fields.hpp"
#include "samebits/c/recipe.h"
#include "samebits/error.hpp"

namespace samebits::c_api {
namespace {

samebits_recipe recipe_of(const recipe& r) {
  return {.tile = {.rows = r.tile.rows, .cols = r.tile.cols},
          .rule = static_cast<int32_t>(r.rule),
          .eps = r.eps,
          .upper_bound = r.upper_bound,
          .nonfinite = static_cast<int32_t>(r.on_nonfinite),
          .scale_overflow = static_cast<int32_t>(r.on_scale_overflow),
          .overflow = static_cast<int32_t>(r.on_overflow),
          .scale_format = static_cast<int32_t>(r.scale_format),
          .source = static_cast<int32_t>(r.source)};
}

/// Every text of a preset is a string literal, which ends with a null byte.
samebits_recipe_preset preset_of(const recipe_preset& p) {
  return {.name = p.name.data(),
          .reproduces = p.reproduces.data(),
          .version = p.version.data(),
          .exceptions = p.exceptions.data(),
          .rules = recipe_of(p.rules),
          .verified = static_cast<int32_t>(p.verified),
          .verified_nonfinite = static_cast<int32_t>(p.nonfinite)};
}

const recipe_preset& preset_named(const char* name) {
  const std::string wanted(&required(name, "name"));
  if (const recipe_preset* preset = find_recipe(wanted)) return *preset;
  std::string names;
  for (const recipe_preset& p : recipe_presets) {
    names += (names.empty() ? "" : ", ") + std::string(p.name);
  }
  throw invalid_argument("'" + wanted + "' is not a recipe; there are: " + names);
}

samebits_quantize_options options_of(const samebits_recipe& r) {
  samebits_quantize_options o = defaults<samebits_quantize_options>();
  o.tile = r.tile;
  o.rule = r.rule;
  o.eps = r.eps;
  o.upper_bound = r.upper_bound;
  o.nonfinite = r.nonfinite;
  o.overflow = r.overflow;
  o.scale_overflow = r.scale_overflow;
  return o;
}

}  // namespace

recipe rules(const samebits_recipe* recipe) {
  const samebits_recipe& r = required(recipe, "recipe");
  return {
      .tile = tile(r.tile),
      .rule = enumerator<scale_rule>(r.rule, "recipe.rule"),
      .eps = r.eps,
      .upper_bound = r.upper_bound,
      .on_nonfinite = enumerator<nonfinite>(r.nonfinite, "recipe.nonfinite"),
      .on_scale_overflow = enumerator<scale_overflow>(r.scale_overflow, "recipe.scale_overflow"),
      .on_overflow = enumerator<overflow>(r.overflow, "recipe.overflow"),
      .scale_format = enumerator<format_id>(r.scale_format, "recipe.scale_format"),
      .source = enumerator<scale_source>(r.source, "recipe.source")};
}

}  // namespace samebits::c_api

namespace api = samebits::c_api;

int32_t samebits_recipe_count() { return static_cast<int32_t>(samebits::recipe_presets.size()); }

samebits_status samebits_recipe_at(int32_t position, samebits_recipe_preset* preset) {
  return api::guarded([&] {
    if (position < 0 || position >= samebits_recipe_count()) {
      throw samebits::invalid_argument("position: must be in 0 .. " +
                                       std::to_string(samebits_recipe_count() - 1) + ", got " +
                                       std::to_string(position));
    }
    api::required(preset, "preset") =
        api::preset_of(samebits::recipe_presets[static_cast<size_t>(position)]);
  });
}

samebits_status samebits_find_recipe(const char* name, samebits_recipe_preset* preset) {
  return api::guarded(
      [&] { api::required(preset, "preset") = api::preset_of(api::preset_named(name)); });
}

samebits_status samebits_recipe_options(const samebits_recipe* recipe,
                                        samebits_quantize_options* options) {
  return api::guarded([&] {
    api::write_options(options, api::options_of(api::required(recipe, "recipe")), "options");
  });
}

samebits_status samebits_quantize_by_recipe(const samebits_view* in,
                                            const samebits_quantize_outputs* outputs,
                                            const samebits_recipe* recipe,
                                            const samebits_executor* where) {
  return api::guarded([&] {
    samebits::quantize(api::view(in, "in"), api::outputs(outputs), api::rules(recipe),
                       api::where(where));
  });
}
