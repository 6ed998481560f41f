// `fpinspect compare`: measures how the values of two files differ.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <thread>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/compare/comparison.hpp"
#include "fpinspect/verdict/gate/gate.hpp"

namespace fpinspect {
namespace {

constexpr std::array compare_figures = {
    figure_spec{"differ", "%"},   figure_spec{"sqnr", "dB"},     figure_spec{"max-ulp", ""},
    figure_spec{"max-error", ""}, figure_spec{"mean-error", ""}, figure_spec{"underflow", "%"},
    figure_spec{"new-nan", "%"},  figure_spec{"new-inf", "%"},   figure_spec{"bits-differ", "%"},
};

void add_figures(gate& conditions, const std::string& name, const difference_figures& f) {
  const auto count = [&](std::string_view figure, std::uint64_t part, std::uint64_t all) {
    conditions.add_count(figure, "", name, part, all);
  };
  count("differ", f.differ, f.count);
  conditions.add("sqnr", "", name, f.ratio().level());
  conditions.add("max-ulp", "", name, static_cast<double>(f.max_ulp));
  conditions.add("max-error", "", name, f.max_error);
  conditions.add("mean-error", "", name, f.mean_error());
  count("underflow", f.underflow, f.nonzero);
  count("new-nan", f.new_nan, f.count);
  count("new-inf", f.new_inf, f.count);
  // Elements of two formats have no bits in common to compare: every number that differs counts.
  count("bits-differ", f.bits_differ.value_or(f.differ), f.count);
}

/// With an original, conditions are on both files against the original.
void add_pair(gate& conditions, const compared_pair& pair) {
  if (!pair.reason.empty()) return conditions.add_failure(pair.name, pair.reason);
  if (!pair.against) return add_figures(conditions, pair.name, pair.figures);
  add_figures(conditions, cat(pair.name, " in A"), pair.against->a);
  add_figures(conditions, cat(pair.name, " in B"), pair.against->b);
}

}  // namespace

void run_compare(const compare_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  gate conditions(conditions_argument("--fail-if", arguments.fail_if, compare_figures));
  samebits::executor where = backend_argument("");
  where.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const compared_file a =
      open_compared(arguments.a, arguments.tensors, "--from-a", arguments.from_a);
  const compared_file b =
      open_compared(arguments.b, arguments.tensors, "--from-b", arguments.from_b);
  std::optional<compared_file> original;
  if (!arguments.original.empty()) {
    original = open_compared(arguments.original, arguments.tensors, "--from-original",
                             arguments.from_original);
  }
  const comparison all = compare_files(a, b, original ? &*original : nullptr, where);
  for (const compared_pair& pair : all.pairs) add_pair(conditions, pair);
  for (const std::string& name : all.only_in_a) conditions.add_failure(name, "only in A");
  for (const std::string& name : all.only_in_b) conditions.add_failure(name, "only in B");
  if (arguments.view.json) {
    json_writer json;
    json.begin_object();
    json.member("schema", 1);
    write_comparison_json(json, all, arguments);
    conditions.write_json(json);
    json.end_object();
    out.write(json.document());
  } else {
    out.write(comparison_text(all, arguments, term));
  }
  if (conditions.is_empty()) return;
  out.flush();
  conditions.check();
}

}  // namespace fpinspect
