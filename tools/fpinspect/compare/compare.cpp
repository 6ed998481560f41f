// `fpinspect compare`: measures how the values of two files differ.
#include <optional>
#include <span>
#include <string>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/command.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/compare/comparison.hpp"
#include "fpinspect/verdict/gate/gate.hpp"

namespace fpinspect {

// --- The comparison of two files as JSON ----------------------------------------------------------

namespace {

json_value place_json(const std::optional<found_difference>& at) {
  if (!at) return std::nullopt;
  return json_line({{"index", at->index}, {"a", at->a}, {"b", at->b}});
}

json_object figures_json(const difference_figures& f) {
  const sqnr ratio = f.ratio();
  json_object ulp;
  for (std::size_t k = 0; k < f.steps.size(); ++k) {
    if (f.steps[k] == 0) continue;
    ulp.add(std::to_string(k == 0 ? 0 : std::uint64_t{1} << (k - 1)), f.steps[k]);
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
          {"ulp_format", samebits::name(f.ulp_format)},
          {"max_ulp", f.max_ulp},
          {"ulp", ulp.on_one_line()},
          {"largest", place_json(f.largest)},
          {"first", place_json(f.first)}};
}

json_object pair_json(const compared_pair& pair) {
  json_object members = {
      {"name", pair.a->name},
      {"shape", pair.a->shape},
      {"count", pair.a->count},
      {"type_a", pair.a->type},
      {"type_b", pair.b->type},
      {"not_compared", pair.reason.empty() ? std::nullopt : std::optional(pair.reason)}};
  if (!pair.against) return pair.reason.empty() ? members.add(figures_json(pair.figures)) : members;
  const original_figures& f = *pair.against;
  return members.add("against_original", json_object{{"a", figures_json(f.a)},
                                                     {"b", figures_json(f.b)},
                                                     {"closer_a", f.closer.a},
                                                     {"closer_b", f.closer.b}});
}

}  // namespace

json_object comparison_json(const comparison& all) {
  return {{"tensors", json_rows(all.pairs, pair_json)},
          {"only_in_a", json_list(all.only_in_a)},
          {"only_in_b", json_list(all.only_in_b)}};
}

// --- `fpinspect compare`: measures how the values of two files differ -----------------------------

namespace {

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

class compare_command final : public command {
 public:
  void options(option_list& add) override {
    add.required(
        "A", a_,
        "The reference: FILE.npy, .npz, .safetensors or .gguf, an index, FILE#TENSOR, or -");
    add.required("B", b_, "The other one");
    add.text("--original", original_,
             "Say whether A or B is closer to this file, the reference of both");
    add.repeated("--tensor", tensors_, "Only this tensor, or those of a pattern");
    add.list(
        "--fail-if", conditions_,
        [](const std::vector<std::string>& texts) {
          return gate(texts, std::span<const figure<difference_figures>>(compare_figures));
        },
        "Exit code 1 if a tensor has: 'max-ulp>1', 'sqnr<30dB', 'new-nan>0', ...");
    add.text("--from-a", from_a_, "A's integers are codes of this format");
    add.text("--from-b", from_b_, "The same of B");
    add.text("--from-original", from_original_, "The same of the original");
    add.need({"--from-original"}, "--original");
  }

  void run(const session& s) override {
    const samebits::executor where = all_threads();
    const compared_file a = open_compared(a_, tensors_, "--from-a", from_a_);
    const compared_file b = open_compared(b_, tensors_, "--from-b", from_b_);
    std::optional<compared_file> original;
    if (!original_.empty()) {
      original = open_compared(original_, tensors_, "--from-original", from_original_);
    }
    const comparison all = compare_files(a, b, original ? &*original : nullptr, where);
    for (const compared_pair& pair : all.pairs) add_pair(conditions_, pair);
    for (const std::string& name : all.only_in_a) conditions_.add_failure(name, "only in A");
    for (const std::string& name : all.only_in_b) conditions_.add_failure(name, "only in B");
    if (s.json) {
      s.write_json(json_object{
          {"a", a_}, {"b", b_}, {"original", original ? std::optional(original_) : std::nullopt}}
                       .add(comparison_json(all))
                       .add("fail_if", conditions_.json()));
    } else {
      s.out.write(comparison_text(all, a_, b_, original_, s.term));
    }
    if (conditions_.is_empty()) return;
    s.out.flush();
    conditions_.check();
  }

 private:
  std::string a_;
  std::string b_;
  std::string original_;
  std::vector<std::string> tensors_;
  gate conditions_;
  std::string from_a_;
  std::string from_b_;
  std::string from_original_;
};

const registered<compare_command> compare_here("compare",
                                               "Measure how the values of two files differ", 90);

}  // namespace

}  // namespace fpinspect
