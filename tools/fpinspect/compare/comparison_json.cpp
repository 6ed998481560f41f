// The comparison of two files as JSON.
#include <string>

#include "fpinspect/compare/comparison.hpp"

namespace fpinspect {
namespace {

void write_place(json_writer& json, const char* key, const std::optional<found_difference>& at) {
  json.key(key);
  if (!at) return json.value(std::nullopt);
  json.begin_object(json_writer::layout::one_line);
  json.member("index", at->index);
  json.member("a", at->a);
  json.member("b", at->b);
  json.end_object();
}

/// The members of the figures.
void write_figures(json_writer& json, const difference_figures& f) {
  const sqnr ratio = f.ratio();
  json.member("differ", f.differ);
  json.member("bits_differ", f.bits_differ);
  json.member("new_nan", f.new_nan);
  json.member("new_inf", f.new_inf);
  json.member("lost_nan", f.lost_nan);
  json.member("lost_inf", f.lost_inf);
  json.member("nonzero", f.nonzero);
  json.member("underflow", f.underflow);
  json.member("paired", f.paired);
  json.member("max_error", f.max_error);
  json.member("mean_error", f.mean_error());
  json.member("sqnr_db", ratio.db);
  json.member("sqnr_note", ratio.note());
  json.member("signal", f.signal);
  json.member("noise", f.noise);
  json.member("ulp_format", samebits::name(f.ulp_format));
  json.member("max_ulp", f.max_ulp);
  json.key("ulp");
  json.begin_object(json_writer::layout::one_line);
  for (std::size_t k = 0; k < f.steps.size(); ++k) {
    if (f.steps[k] == 0) continue;
    json.member(std::to_string(k == 0 ? 0 : std::uint64_t{1} << (k - 1)), f.steps[k]);
  }
  json.end_object();
  write_place(json, "largest", f.largest);
  write_place(json, "first", f.first);
}

void write_pair(json_writer& json, const compared_pair& pair) {
  json.begin_object();
  json.member("name", pair.a->name);
  json.member("shape", std::span<const std::uint64_t>(pair.a->shape));
  json.member("count", pair.a->count);
  json.member("type_a", pair.a->type);
  json.member("type_b", pair.b->type);
  json.member("not_compared",
              pair.reason.empty() ? std::nullopt : std::optional<std::string>(pair.reason));
  if (pair.against) {
    const original_figures& f = *pair.against;
    json.key("against_original");
    json.begin_object();
    for (const bool first : {true, false}) {
      json.key(first ? "a" : "b");
      json.begin_object();
      write_figures(json, first ? f.a : f.b);
      json.end_object();
    }
    json.member("closer_a", f.closer.a);
    json.member("closer_b", f.closer.b);
    json.end_object();
  } else if (pair.reason.empty()) {
    write_figures(json, pair.figures);
  }
  json.end_object();
}

void write_names(json_writer& json, const char* key, const std::vector<std::string>& names) {
  json.key(key);
  json.begin_array(json_writer::layout::one_line);
  for (const std::string& name : names) json.value(name);
  json.end_array();
}

}  // namespace

void write_comparison_json(json_writer& json, const comparison& all,
                           const compare_arguments& arguments) {
  json.member("a", arguments.a);
  json.member("b", arguments.b);
  json.member("original", arguments.original.empty()
                              ? std::nullopt
                              : std::optional<std::string>(arguments.original));
  json.key("tensors");
  json.begin_array();
  for (const compared_pair& pair : all.pairs) write_pair(json, pair);
  json.end_array();
  write_names(json, "only_in_a", all.only_in_a);
  write_names(json, "only_in_b", all.only_in_b);
}

}  // namespace fpinspect
