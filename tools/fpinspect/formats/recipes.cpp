// `fpinspect recipes`: lists the named quantization recipes and the claims about each.
#include <span>
#include <string>

#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "fpinspect/quantize/quantize_arguments.hpp"
#include "samebits/recipe.hpp"

namespace fpinspect {
namespace {

using samebits::recipe_preset;

void write_recipes_json(output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.key("recipes");
  json.begin_array();
  for (const recipe_preset& p : samebits::recipe_presets) {
    json.begin_object();
    json.member("name", p.name);
    json.member("block", block_text(p.rules.tile));
    json.member("scale_rule", samebits::name(p.rules.scale));
    json.member("scale_format", samebits::name(p.rules.scale_format));
    json.member("scales", samebits::name(p.rules.source));
    json.member("eps", static_cast<double>(p.rules.eps));
    json.member("upper_bound", static_cast<double>(p.rules.upper_bound));
    json.member("nonfinite", samebits::name(p.rules.nonfinite));
    json.member("scale_overflow", samebits::name(p.rules.scale_overflow));
    json.member("overflow", samebits::name(p.rules.overflow));
    json.member("verified", samebits::name(p.verified));
    json.member("verified_nonfinite", samebits::name(p.nonfinite));
    json.member("version", p.version);
    json.member("reproduces", p.reproduces);
    json.member("exceptions", p.exceptions);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out.write(json.document());
}

std::string recipe_row(std::string_view name, std::string_view block, std::string_view scale,
                       std::string_view format, std::string_view eps, std::string_view nonfinite,
                       std::string_view verified) {
  return cat(left(name, 20), left(block, 9), left(scale, 10), left(format, 8), left(eps, 9),
             left(nonfinite, 11), verified, "\n");
}

std::string evidence_text(const recipe_preset& p) {
  const bool finite_only = p.verified != p.nonfinite;
  return cat(samebits::name(p.verified), finite_only ? ", finite" : "");
}

}  // namespace

void run_recipes(const recipes_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  if (arguments.view.json) return write_recipes_json(out);
  out.write(term.painted(paint::heading, recipe_row("recipe", "block", "rule", "scales", "eps",
                                                    "nonfinite", "verified")));
  for (const recipe_preset& p : samebits::recipe_presets) {
    const bool delayed = p.rules.source == samebits::scale_source::delayed;
    out.write(recipe_row(p.name, block_text(p.rules.tile), samebits::name(p.rules.scale),
                         delayed ? "delayed" : samebits::name(p.rules.scale_format),
                         general(static_cast<double>(p.rules.eps), 3),
                         samebits::name(p.rules.nonfinite), evidence_text(p)));
    out.write(cat("  ", p.version, ": ", p.reproduces, "\n"));
    out.write(cat("  not claimed: ", p.exceptions, "\n"));
  }
  out.write(
      "library output: checked against the library's own output, on >= 10^7 finite elements and "
      "on\n"
      "  tiles with NaN and Inf\n"
      "library output, finite: checked on the finite elements; what the library does with NaN and "
      "Inf\n"
      "  was read in that source\n"
      "unverified: the formulas were read in that source; the library's own code was not run\n");
}

}  // namespace fpinspect
