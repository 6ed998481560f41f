// `fpinspect tensor`: which format or recipe for the tensors of files, which loss scale, and what
// is lost.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "fpinspect/quantize/quantize_gate.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "fpinspect/tensors/element_statistics.hpp"
#include "fpinspect/tensors/quick_output.hpp"
#include "fpinspect/tensors/source/glob.hpp"
#include "fpinspect/tensors/source/selection.hpp"
#include "fpinspect/tensors/tensor_details.hpp"
#include "fpinspect/tensors/tensor_json.hpp"
#include "fpinspect/tensors/tensor_recipes.hpp"
#include "fpinspect/tensors/tensor_statistics.hpp"
#include "fpinspect/verdict/collect.hpp"
#include "fpinspect/verdict/gate/tensor_gate.hpp"
#include "fpinspect/verdict/output/verdict_json.hpp"
#include "fpinspect/verdict/output/verdict_text.hpp"
#include "fpinspect/verdict/verdict.hpp"
#include "samebits/core/format.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;

/// Whether statistics for a target format are meaningful: it needs a sign and a zero, and must be
/// narrower than fp64.
bool has_statistics(format_id format) {
  return format != format_id::fp64 && format != format_id::e8m0;
}

std::vector<format_id> target_formats(const tensor_arguments& arguments) {
  std::vector<format_id> formats = format_list_argument("--to", arguments.to);
  for (const format_id format : formats) {
    if (has_statistics(format)) continue;
    throw usage_error("--to: " + std::string(samebits::name(format)) +
                      " is not a target format of `tensor`");
  }
  if (!formats.empty()) return formats;
  if (!arguments.view.json && !arguments.all_formats) {
    return {format_id::fp16, format_id::bf16, format_id::e4m3, format_id::e5m2};
  }
  for (int i = 0; i < samebits::format_count; ++i) {
    if (has_statistics(samebits::format_at(i))) formats.push_back(samebits::format_at(i));
  }
  return formats;
}

/// The exponent of --scale 2^N, if it is given.
std::optional<int> scale_argument(const tensor_arguments& arguments) {
  const std::string_view text = arguments.scale;
  if (text.empty()) return std::nullopt;
  constexpr int largest = 127;  // loss scales are binary32
  int log2 = largest + 1;
  if (text.starts_with("2^")) {
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), log2);
    if (error != std::errc{} || end != text.data() + text.size()) log2 = largest + 1;
  }
  if (log2 >= -largest && log2 <= largest) return log2;
  throw usage_error(cat("--scale: ", samebits::tensor_file::quote(arguments.scale),
                        " is no power of two 2^N with N from -127 to 127, such as 2^16"));
}

/// Replaces the effects of formats by those on the elements times 2^log2.
void scale_effects(const std::vector<shown_tensor>& tensors, std::span<const format_id> formats,
                   int log2, const samebits::executor& where, collected& all) {
  const samebits::statistics_request request = {.casts = {formats.begin(), formats.end()},
                                                .scale_log2 = log2};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].how) all.stats[i].casts = statistics_of(tensors[i], request, where).casts;
  }
}

/// Refuses patterns of --details and --role that match no tensor.
void check_patterns(const tensor_arguments& arguments, const std::vector<role_rule>& rules,
                    const std::vector<shown_tensor>& tensors) {
  for (const std::string& pattern : arguments.details) require_match("--details", pattern, tensors);
  for (const role_rule& rule : rules) require_match("--role", rule.pattern, tensors);
}

/// The best backend here, on all processors.
samebits::executor all_threads() {
  samebits::executor where = backend_argument("");
  where.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return where;
}

/// Without tensors no condition can hold, so a check fails.
void require_tensors(const tensor_arguments& arguments, const std::vector<shown_tensor>& tensors) {
  if (arguments.fail_if.empty() || !tensors.empty()) return;
  throw check_failed("--fail-if: there are no tensors");
}

/// Whether the detailed view of a tensor is shown: it is the only one, --details matches it, or
/// --to, --all-formats or --scale asks for figures without --details.
bool shows_details(const tensor_arguments& arguments, const shown_tensor& tensor,
                   std::size_t tensors) {
  if (arguments.details.empty()) {
    return tensors == 1 || !arguments.to.empty() || arguments.all_formats ||
           !arguments.scale.empty();
  }
  return std::any_of(
      arguments.details.begin(), arguments.details.end(),
      [&](const std::string& pattern) { return matches_glob(pattern, tensor.plain_name()); });
}

void write_json(const std::vector<shown_tensor>& tensors, const collected& all,
                std::span<const format_id> formats, std::optional<int> scale, const verdict& v,
                const gate& conditions, output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("scale_log2", scale);
  json.key("verdict");
  write_verdict_json(json, v, all.evidence);
  json.key("tensors");
  json.begin_array();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    write_tensor_json(json, tensors[i], all.stats[i], formats);
  }
  json.end_array();
  conditions.write_json(json);
  json.end_object();
  out.write(json.document());
}

void write_text(const std::vector<shown_tensor>& tensors, const collected& all,
                std::span<const format_id> formats, const verdict& v,
                const tensor_arguments& arguments, const terminal& term, output& out) {
  if (arguments.plain) return out.write(plain_table(v, all.evidence));
  out.write(heading_text(all.evidence, heading_of(tensors)));
  if (arguments.list) return out.write(tensor_table(v, all.evidence, term));
  out.write(verdict_text(v, all.evidence, term) + "\n");
  details_writer details(formats, scale_argument(arguments), term, out);
  bool any = false;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!shows_details(arguments, tensors[i], tensors.size())) continue;
    details.write(tensors[i], all.stats[i], all.evidence[i].what);
    any = true;
  }
  if (any) return details.write_legend();
  out.write("more: --list, --details NAME, --stats, --recipes, --json; fpinspect report FILE\n");
}

void run_quick(const tensor_arguments& arguments, const terminal& term, output& out) {
  gate conditions(quick_conditions(arguments.fail_if));
  const samebits::executor where = all_threads();
  const std::vector<shown_tensor> tensors = tensors_to_show(arguments);
  const std::vector<std::string> names = names_of(tensors);
  if (arguments.view.json) {
    write_quick_statistics_json(tensors, names, conditions, where, out);
  } else if (tensors.empty()) {
    out.write("no tensors\n");
  } else {
    write_quick_statistics(tensors, names, heading_of(tensors), conditions, where, term, out);
  }
  out.flush();
  require_tensors(arguments, tensors);
  conditions.check();
}

void run_recipes(const tensor_arguments& arguments, const terminal& term, output& out) {
  gate conditions = recipes_gate(arguments.fail_if);
  const samebits::executor where = all_threads();
  const std::vector<shown_tensor> tensors = tensors_to_show(arguments);
  const std::vector<std::string> names = names_of(tensors);
  std::vector<recipe_source> sources;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const shown_tensor& tensor = tensors[i];
    const std::string name = tensor.plain_name();
    sources.push_back({tensor.file, tensor.info, tensor.how, tensor.title(), names[i],
                       judged_matrix_of(tensor.info, is_weight_shaped(name, guessed_role(name)))});
  }
  if (arguments.view.json) {
    write_tensor_recipes_json(sources, conditions, where, out);
  } else {
    write_tensor_recipes(sources, conditions, where, term, out);
  }
  out.flush();
  require_tensors(arguments, tensors);
  conditions.check();
}

}  // namespace

void run_tensor(const tensor_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  if (arguments.quick) return run_quick(arguments, term, out);
  if (arguments.recipes) return run_recipes(arguments, term, out);
  const std::vector<format_id> formats = target_formats(arguments);
  const std::optional<int> scale = scale_argument(arguments);
  const need wanted = need_argument(arguments.need);
  const std::vector<role_rule> rules = role_rules(arguments.roles);
  const tensor_gate conditions(arguments.fail_if, format_list_argument("--to", arguments.to));
  const samebits::executor executor = all_threads();
  const std::vector<shown_tensor> tensors = tensors_to_show(arguments);
  if (arguments.stats) {
    if (arguments.view.json) return write_tensor_statistics_json(tensors, executor, out);
    return write_tensor_statistics(tensors, executor, term, out);
  }
  check_patterns(arguments, rules, tensors);
  if (tensors.empty() && !arguments.view.json) {
    if (!arguments.plain) out.write("no tensors\n");
    out.flush();
    return require_tensors(arguments, tensors);
  }
  const std::vector<std::string> names = names_of(tensors);
  const bool details =
      !arguments.list &&
      (arguments.view.json || std::any_of(tensors.begin(), tensors.end(), [&](const auto& one) {
         return shows_details(arguments, one, tensors.size());
       }));
  std::vector<format_id> measured = conditions.formats();
  if (details) measured.insert(measured.end(), formats.begin(), formats.end());
  collected all = collect(tensors, names, rules, measured, wanted, executor);
  if (scale && details) scale_effects(tensors, formats, *scale, executor, all);
  const verdict v = verdict_on(all.evidence, wanted);
  gate checked = conditions.checked(all, v);
  for (std::size_t i = 0; i < tensors.size(); ++i) {  // conditions hold for measured tensors only
    if (!tensors[i].how) checked.add_failure(names[i], tensors[i].note);
  }
  if (arguments.view.json) {
    write_json(tensors, all, formats, scale, v, checked, out);
  } else {
    write_text(tensors, all, formats, v, arguments, term, out);
  }
  if (checked.is_empty()) return;
  out.flush();
  checked.check();
}

}  // namespace fpinspect
