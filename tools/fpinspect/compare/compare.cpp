// `fpinspect compare`: measures how the values of two files differ.

#include "fpinspect/cli/command.hpp"
#include "fpinspect/compare/comparison.hpp"
#include "fpinspect/verdict/gate/gate.hpp"

namespace fpinspect {
namespace {

// --- JSON ----------------------------------------------------------------------------------------

json_value place_json(const std::optional<found_difference>& at) {
  if (!at) return std::nullopt;
  return json_line({{"index", at->index}, {"a", at->a}, {"b", at->b}});
}

/// The smallest distance that difference_figures::steps[k] counts.
std::uint64_t first_distance(std::size_t k) { return k == 0 ? 0 : std::uint64_t{1} << (k - 1); }

json_object figures_json(const difference_figures& f) {
  const sqnr ratio = f.ratio();
  json_object ulp;
  for (std::size_t k = 0; k < f.steps.size(); ++k) {
    if (f.steps[k] == 0) continue;
    ulp.add(cat(first_distance(k)), f.steps[k]);
  }
  return {{"differ", f.differ},
          {"bits_differ", f.bits_differ},
          {"new_nan", f.new_nan},
          {"new_inf", f.new_inf},
          {"lost_nan", f.lost_nan},
          {"lost_inf", f.lost_inf},
          {"nonzero", f.nonzero},
          {"underflow", f.underflow},
          {"paired", f.paired},
          {"max_error", f.max_error},
          {"mean_error", f.mean_error()},
          {"sqnr_db", ratio.db},
          {"sqnr_note", ratio.note()},
          {"signal", f.signal},
          {"noise", f.noise},
          {"ulp_format", name(f.ulp_format)},
          {"max_ulp", f.max_ulp},
          {"ulp", ulp.on_one_line()},
          {"largest", place_json(f.largest)},
          {"first", place_json(f.first)}};
}

json_object pair_json(const compared_pair& pair) {
  json_object members = {
      {"name", pair.a->in.info.name},
      {"shape", pair.a->in.info.shape},
      {"count", pair.a->in.info.count},
      {"type_a", pair.a->type()},
      {"type_b", pair.b->type()},
      {"not_compared", pair.reason.empty() ? std::nullopt : std::optional(pair.reason)}};
  if (pair.rule) members.add("rule", pair.rule->empty() ? std::nullopt : pair.rule);
  if (!pair.against) return pair.reason.empty() ? members.add(figures_json(pair.figures)) : members;
  const original_figures& f = *pair.against;
  return members.add("against_original", json_object{{"a", figures_json(f.a)},
                                                     {"b", figures_json(f.b)},
                                                     {"closer_a", f.closer_a},
                                                     {"closer_b", f.closer_b}});
}

json_object comparison_json(const comparison& all) {
  return {{"tensors", json_rows(all.pairs, pair_json)},
          {"only_in_a", json_list(all.only_in_a)},
          {"only_in_b", json_list(all.only_in_b)}};
}

// --- Text ----------------------------------------------------------------------------------------

constexpr std::size_t most_names = 5;

std::string error_text(double error) { return error == 0 ? "0" : scientific(error, 2); }

/// "A", "B" or "-": whose SQNR against the original is higher.
std::string_view closer_of(const original_figures& f) {
  const double a = f.a.ratio().level();
  const double b = f.b.ratio().level();
  return a == b ? "-" : a > b ? "A" : "B";
}

using pair_column = column<compared_pair>;
constexpr pair_column name_column = {"", "\n  tensor", 0, nullptr,
                                     [](auto& p) { return cat("  ", p.name); }};
constexpr pair_column difference_columns[] = {
    name_column,
    {"", "values\ndiffer", -10, nullptr,
     [](auto& p) { return percent(p.figures.differ, p.figures.count); }},
    {"", "largest\nerror", -10, nullptr, [](auto& p) { return error_text(p.figures.max_error); }},
    {"", "mean\nerror", -10, nullptr, [](auto& p) { return error_text(p.figures.mean_error()); }},
    {"", "largest\nulp", -10, nullptr,
     [](auto& p) { return cat(" ", right(cat(p.figures.max_ulp), 9)); }},
    {"", "SQNR\nof B", -10, nullptr, [](auto& p) { return p.figures.ratio().text(); }},
};
constexpr pair_column original_columns[] = {
    name_column,
    {"", "SQNR\nof A", -9, nullptr, [](auto& p) { return p.against->a.ratio().text(); }},
    {"", "SQNR\nof B", -9, nullptr, [](auto& p) { return p.against->b.ratio().text(); }},
    {"", "largest\nof A", -10, nullptr, [](auto& p) { return error_text(p.against->a.max_error); }},
    {"", "largest\nof B", -10, nullptr, [](auto& p) { return error_text(p.against->b.max_error); }},
    {"", "A is\ncloser", -9, nullptr,
     [](auto& p) { return percent(p.against->closer_a, p.against->a.count); }},
    {"", "B is\ncloser", -9, nullptr,
     [](auto& p) { return percent(p.against->closer_b, p.against->a.count); }},
    {"", "  closer\n  by SQNR", 0, nullptr,
     [](auto& p) { return cat("  ", closer_of(*p.against)); }},
};

std::string pair_table(const std::vector<const compared_pair*>& pairs,
                       std::span<const pair_column> wanted, const terminal& term) {
  constexpr std::size_t widest = 40;
  std::vector<pair_column> columns(wanted.begin(), wanted.end());
  std::size_t width = 6;
  for (const compared_pair* pair : pairs) width = std::max(width, pair->name.size());
  columns.front().width = static_cast<int>(2 + std::min(width, widest));
  std::string text = term.painted(paint::heading, table_heading(columns));
  for (const compared_pair* pair : pairs) text += table_line(columns, *pair);
  return text;
}

/// Where the first difference and the largest error of a tensor are.
std::string places(const compared_pair& pair) {
  const difference_figures& f = pair.figures;
  const auto place = [&](const char* what, const found_difference& at) {
    return cat("  ", pair.name, " ", position_text(at.index, pair.a->in.info.shape), ": ",
               shortest(at.a), " in A, ", shortest(at.b), " in B", what, "\n");
  };
  const bool one = f.largest && f.largest->index == f.first->index;
  std::string text = place(one ? ", first and largest" : ", first", *f.first);
  if (f.largest && !one) text += place(", largest", *f.largest);
  return text;
}

/// Elements of all tensors by their distance in ulp.
std::string ulp_histogram(const std::vector<const compared_pair*>& pairs) {
  std::array<std::uint64_t, 65> steps{};
  std::uint64_t all = 0;
  std::vector<std::string_view> formats;
  for (const compared_pair* pair : pairs) {
    for (std::size_t k = 0; k < steps.size(); ++k) steps[k] += pair->figures.steps[k];
    all += pair->figures.paired;
    add_once(formats, name(pair->figures.ulp_format));
  }
  std::string text = cat("Distance in ulp of ", joined(formats), ", in the tensors that differ\n");
  for (std::size_t k = 0; k < steps.size(); ++k) {
    if (steps[k] == 0) continue;
    const std::uint64_t first = first_distance(k);
    const std::string range = k < 2 ? cat(first) : cat(first, " to ", first - 1 + first);
    text += cat("  ", right(range, 20), right(cat(steps[k]), 14), right(percent(steps[k], all), 10),
                "\n");
  }
  return text;
}

std::string names_text(const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  const auto shown = std::span(names).first(std::min(most_names, names.size()));
  const std::string more =
      names.size() > most_names ? cat(" and ", names.size() - most_names, " more") : "";
  return cat(what, ": ", joined(shown), more, "\n");
}

/// Tensors that are in one file only or are not compared.
std::string left_out(const comparison& all) {
  std::string text =
      names_text("Only in A", all.only_in_a) + names_text("Only in B", all.only_in_b);
  for (const compared_pair& pair : all.pairs) {
    if (!pair.reason.empty()) text += cat("Not compared: ", pair.name, ": ", pair.reason, "\n");
  }
  return text;
}

/// A line for each pair of which text_of(pair) says something, below a heading.
template <class Text>
std::string notes_part(const char* heading, const std::vector<const compared_pair*>& pairs,
                       const Text& text_of) {
  std::string lines;
  for (const compared_pair* pair : pairs) {
    const std::string note = text_of(*pair);
    if (!note.empty()) lines += cat("  ", pair->name, ": ", note, "\n");
  }
  return lines.empty() ? lines : cat(heading, "\n", lines, "\n");
}

std::string rule_note(const compared_pair& pair) {
  return !pair.rule ? "" : pair.rule->empty() ? "no known rule" : *pair.rule;
}

double badness(const compared_pair& pair) {
  const difference_figures& f = pair.against ? pair.against->b : pair.figures;
  const sqnr ratio = f.ratio();
  return ratio.empty ? std::numeric_limits<double>::infinity() : -ratio.level();
}

/// The pairs that are compared and differ, largest difference first.
std::vector<const compared_pair*> different_pairs(const comparison& all) {
  std::vector<const compared_pair*> result;
  for (const compared_pair& pair : all.pairs) {
    const bool equal = !pair.against && pair.figures.differ == 0;
    if (pair.reason.empty() && !equal) result.push_back(&pair);
  }
  std::ranges::stable_sort(result,
                           [](const auto* x, const auto* y) { return badness(*x) > badness(*y); });
  return result;
}

std::string two_files_text(const comparison& all, const std::string& heading,
                           const terminal& term) {
  const std::vector<const compared_pair*> different = different_pairs(all);
  std::uint64_t compared = 0;
  std::uint64_t bits = 0;
  for (const compared_pair& pair : all.pairs) {
    if (!pair.reason.empty()) continue;
    ++compared;
    bits += pair.figures.differ == 0 ? pair.figures.bits_differ.value_or(0) : 0;
  }
  std::string text = cat(heading, number_of(compared, "tensor"), ", ", compared - different.size(),
                         " equal, ", different.size(), " differ\n");
  if (bits != 0) text += cat("Equal numbers with other bits (-0, NaN): ", bits, "\n");
  text += "\n";
  if (!different.empty()) {
    text += cat(pair_table(different, difference_columns, term), "\n",
                notes_part("Rules", different, rule_note),
                notes_part("NaN and Inf", different,
                           [](const compared_pair& pair) { return pair.figures.specials(); }),
                ulp_histogram(different), "\n");
    for (std::size_t i = 0; i < std::min(most_names, different.size()); ++i) {
      text += places(*different[i]);
    }
    text += "\n";
  }
  const std::string missing = left_out(all);
  if (!missing.empty()) text += missing + "\n";
  if (different.empty()) return text.substr(0, text.size() - 1);
  return text + "error: |a - b|   SQNR: A is the signal, A - B the noise\n";
}

std::string original_text(const comparison& all, const std::string& heading, const terminal& term) {
  const std::vector<const compared_pair*> pairs = different_pairs(all);
  const auto closer_in = [&](std::string_view file) {
    return std::ranges::count_if(
        pairs, [&](const compared_pair* pair) { return closer_of(*pair->against) == file; });
  };
  const auto a = closer_in("A");
  const auto b = closer_in("B");
  const std::string verdict =
      cat(a == b ? cat("Neither is closer to the original: A in ", a, ", B in ", b)
                 : cat(a > b ? "A" : "B", " is closer to the original in ", std::max(a, b)),
          " of ", number_of(pairs.size(), "tensor"));
  std::string text = cat(heading, term.painted(paint::heading, verdict), "\n\n");
  if (!pairs.empty()) text += pair_table(pairs, original_columns, term) + "\n";
  for (const compared_pair* pair : pairs) {
    const auto note = [&](const char* file, const difference_figures& f) {
      const std::string specials = f.specials();
      if (!specials.empty()) text += cat("  ", pair->name, ": ", specials, " in ", file, "\n");
    };
    note("A", pair->against->a);
    note("B", pair->against->b);
  }
  const std::string missing = left_out(all);
  if (!missing.empty()) text += missing + "\n";
  return text + "A is closer, B is closer: shares of the values; the others are equally far\n";
}

std::string comparison_text(const comparison& all, const std::string& a, const std::string& b,
                            const std::string& original, const terminal& term) {
  const std::string heading = cat("A ", escape_path(a), "\nB ", escape_path(b), "\n");
  if (original.empty()) return two_files_text(all, heading, term);
  return original_text(all, cat("original ", escape_path(original), "\n", heading), term);
}

// --- The command ---------------------------------------------------------------------------------

constexpr figure<difference_figures> compare_figures[] = {
    {{"differ", "%"}, [](auto& f) { return figure_value(f.differ, f.count); }},
    {{"sqnr", "dB"}, [](auto& f) { return f.ratio().level(); }},
    {{"max-ulp", ""}, [](auto& f) { return static_cast<double>(f.max_ulp); }},
    {{"max-error", ""}, [](auto& f) { return f.max_error; }},
    {{"mean-error", ""}, [](auto& f) { return f.mean_error(); }},
    {{"underflow", "%"}, [](auto& f) { return figure_value(f.underflow, f.nonzero); }},
    {{"new-nan", "%"}, [](auto& f) { return figure_value(f.new_nan, f.count); }},
    {{"new-inf", "%"}, [](auto& f) { return figure_value(f.new_inf, f.count); }},
    // Elements of two formats have no bits in common to compare: every number that differs counts.
    {{"bits-differ", "%"},
     [](auto& f) { return figure_value(f.bits_differ.value_or(f.differ), f.count); }},
};

/// With an original, conditions are on both files against the original.
void add_pair(gate& conditions, const compared_pair& pair) {
  if (!pair.reason.empty()) return conditions.add_failure(pair.name, pair.reason);
  const auto add = [&](const std::string& name, const difference_figures& f) {
    conditions.add<difference_figures>(compare_figures, "", name, f);
  };
  if (!pair.against) return add(pair.name, pair.figures);
  add(cat(pair.name, " in A"), pair.against->a);
  add(cat(pair.name, " in B"), pair.against->b);
}

run_function compare_command(option_list& add) {
  auto& in_a =
      add.required("A",
                   "The reference: FILE.npy, .npz, .safetensors, .gguf or .pt, an index, a folder, "
                   "FILE#TENSOR, or -");
  auto& in_b = add.required("B", "The other one");
  auto& in_original =
      add.text("--original", "Say whether A or B is closer to this file, the reference of both");
  auto& tensors = add.repeated("--tensor", "Only this tensor, or those of a pattern");
  auto& conditions = add.list(
      "--fail-if",
      [](const std::vector<std::string>& texts) {
        return gate(texts, std::span<const figure<difference_figures>>(compare_figures));
      },
      "Exit code 1 if a tensor has: 'max-ulp>1', 'sqnr<30dB', 'new-nan>0', ...");
  auto& from_a = add.text("--from-a", "A's integers are codes of this format");
  auto& from_b = add.text("--from-b", "The same of B");
  auto& from_original = add.text("--from-original", "The same of the original");
  auto& explain =
      add.flag("--explain", "Search the cast or recipe that makes one tensor from the other");
  add.exclude("--explain", {"--original"});
  add.need({"--from-original"}, "--original");
  return [&](const session& s) {
    const executor where = all_threads();
    const compared_file a = open_compared(in_a, tensors, "--from-a", from_a);
    const compared_file b = open_compared(in_b, tensors, "--from-b", from_b);
    std::optional<compared_file> original;
    if (!in_original.empty()) {
      original = open_compared(in_original, tensors, "--from-original", from_original);
    }
    comparison all = compare_files(a, b, original ? &*original : nullptr, where);
    for (compared_pair& pair : all.pairs) {
      const bool differs = pair.reason.empty() && !pair.against && pair.figures.differ != 0;
      if (explain && differs) pair.rule = rule_between(pair, where);
    }
    for (const compared_pair& pair : all.pairs) add_pair(conditions, pair);
    for (const std::string& name : all.only_in_a) conditions.add_failure(name, "only in A");
    for (const std::string& name : all.only_in_b) conditions.add_failure(name, "only in B");
    s.write(json_object{{"a", in_a},
                        {"b", in_b},
                        {"original", original ? std::optional(in_original) : std::nullopt}}
                .add(comparison_json(all))
                .add("fail_if", conditions.json()),
            comparison_text(all, in_a, in_b, in_original, s.term));
    conditions.check();
  };
}

const registered compare_here("compare", "Measure how the values of two files differ", 90,
                              compare_command);

}  // namespace
}  // namespace fpinspect
