// `fpinspect report`: writes the verdict on files as a page, or one of its pictures.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/command.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/files.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/report/page.hpp"
#include "fpinspect/report/pictures.hpp"
#include "fpinspect/scaler/traces.hpp"
#include "fpinspect/tensors/source/selection.hpp"
#include "fpinspect/verdict/collect.hpp"
#include "fpinspect/verdict/verdict_options.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;

constexpr std::size_t most_maps = 24;
constexpr std::uint64_t largest_map = std::uint64_t{1} << 28;  // elements: quantized in memory

/// The files, their statistics and the verdict.
struct report_source {
  std::vector<shown_tensor> tensors;
  collected all;
  verdict result;
  std::vector<scaler_row> scale_trace;  ///< of --loss-scale-trace
};

std::optional<tile_map> map_of(const report_source& source, std::size_t i,
                               const samebits::executor& where) {
  if (source.tensors[i].info.count > largest_map) return std::nullopt;
  const tensor_evidence& evidence = source.all.evidence[i];
  return tile_map_of(source.tensors[i], evidence.of_weight, choice_of(source.result, evidence),
                     where);
}

/// The name of the file without its folder, which is nobody's business: pages are passed on.
std::string page_heading(const std::vector<shown_tensor>& tensors) {
  if (tensors.empty()) return "no tensors";
  const std::string heading = heading_of(tensors);
  const bool one_file = heading == samebits::tensor_file::escape_path(tensors.front().path);
  return one_file ? samebits::tensor_file::escape_path(tensors.front().path.filename()) : heading;
}

std::string page_of(const report_source& source, const samebits::executor& where) {
  report_input in = {.heading = page_heading(source.tensors),
                     .tensors = source.all.evidence,
                     .stats = source.all.stats,
                     .result = &source.result,
                     .maps = {},
                     .scale_trace = source.scale_trace};
  for (const std::size_t i : detailed_tensors(in)) {
    if (in.maps.size() == most_maps) break;
    if (auto map = map_of(source, i, where)) in.maps.emplace(i, std::move(*map));
  }
  return report_page(in);
}

[[noreturn]] void refuse_picture(const std::string& name, const char* reason) {
  throw usage_error(cat("--svg ", name, ": ", reason));
}

/// A picture of one tensor.
svg_picture tensor_picture(const report_source& source, const std::string& name,
                           const samebits::executor& where) {
  constexpr std::array formats = {format_id::fp16, format_id::bf16, format_id::e4m3,
                                  format_id::e5m2};
  if (source.tensors.size() != 1) refuse_picture(name, "name one tensor, with --tensor");
  const std::string& tensor = source.all.evidence.front().name;
  const auto counts = exponents_of(source.all.stats.front());
  if (name == "exponents") {
    if (counts.empty()) refuse_picture(name, "the tensor has no finite non-zero values");
    return exponent_picture(tensor, counts, formats);
  }
  const auto map = map_of(source, 0, where);
  if (!map) refuse_picture(name, "the tensor is not a matrix of numbers, or too large");
  if (name == "amax") return amax_picture(tensor, *map);
  const auto c = choice_of(source.result, source.all.evidence.front());
  const auto errors =
      error_picture(tensor, *map, c ? spec_of(*c).name : std::string_view("stored"));
  if (!errors) refuse_picture(name, "the tensor stays as it is stored, or needs a loss scale");
  return *errors;
}

svg_picture picture_of(const report_source& source, const std::string& name, const need& wanted,
                       const samebits::executor& where) {
  if (name == "loss-scale-trace") return scale_trace_picture(source.scale_trace);
  if (name == "resolution") return resolution_picture(all_exponents(source.all.stats));
  if (name == "loss-scale") {
    if (!source.result.loss_scale) refuse_picture(name, "there are no gradients; see --role");
    return loss_scale_picture(source.all.evidence, source.result.loss_scale->best.log2,
                              wanted.underflow_percent);
  }
  return tensor_picture(source, name, where);
}

/// The name of a picture.
std::string picture_argument(std::string_view option, std::string_view text) {
  constexpr std::string_view names[] = {
      "loss-scale", "loss-scale-trace", "resolution", "exponents", "amax", "error"};
  if (std::find(std::begin(names), std::end(names), text) != std::end(names)) {
    return std::string(text);
  }
  refuse_value(option, text, cat("is none of ", joined(names)));
}

class report_command final : public command {
 public:
  void options(option_list& add) override {
    wanted_.add_files(add);
    add.required("-o,--out", out_, "FILE.html, or FILE.svg with --svg");
    add.value("--svg", picture_, picture_argument,
              "One picture: loss-scale, loss-scale-trace, resolution; of one tensor: exponents, "
              "amax, error");
    add.text("--loss-scale-trace", trace_,
             "The loss scale of the training run: CSV with step, scale and applied");
    wanted_.add_tensors(add);
    add_need(add, need_);
    add_roles(add, roles_);
    wanted_.add_from(add);
    add.refuse([&add] { return add.given("--json"); },
               "--json: report writes a page; `fpinspect tensor --json` has the same figures");
    const auto is_trace = [&add] { return add.is("--svg", "loss-scale-trace"); };
    add.need(
        {"--svg"}, [=, this] { return !is_trace() || !trace_.empty(); }, "--loss-scale-trace");
    add.refuse([=, this, &add] { return add.given("--svg") && !is_trace() && !trace_.empty(); },
               "--loss-scale-trace does nothing beside --svg of another picture; leave it out");
  }

  void run(const session& s) override {
    const samebits::executor where = all_threads();
    report_source source;
    if (!trace_.empty()) source.scale_trace = read_scale_trace(trace_);
    const output_file target("--out", out_, {picture_.empty() ? ".html" : ".svg"});
    source.tensors = tensors_to_show(wanted_);
    for (const role_rule& rule : roles_) require_match("--role", rule.pattern, source.tensors);
    source.all = collect(source.tensors, names_of(source.tensors), roles_, {}, need_, where);
    source.result = verdict_on(source.all.evidence, need_);
    target.write({picture_.empty() ? page_of(source, where)
                                   : picture_of(source, picture_, need_, where).document()},
                 s.out);
  }

 private:
  tensor_selection wanted_;
  std::string out_;
  std::string picture_;  ///< empty: the page
  std::string trace_;
  need need_;
  std::vector<role_rule> roles_;
};

const registered<report_command> report_here("report",
                                             "Write the verdict on files as a page with pictures",
                                             110);

}  // namespace
}  // namespace fpinspect
