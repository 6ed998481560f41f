// `fpinspect report`: writes the verdict on files as a page, or one of its pictures.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/files.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/report/page.hpp"
#include "fpinspect/report/pictures.hpp"
#include "fpinspect/scaler/scale_trace.hpp"
#include "fpinspect/tensors/source/selection.hpp"
#include "fpinspect/verdict/collect.hpp"
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

report_source source_of(const report_arguments& arguments, const need& wanted,
                        const samebits::executor& where) {
  const std::vector<role_rule> rules = role_rules(arguments.roles);
  tensor_arguments selection;
  selection.files = arguments.files;
  selection.tensors = arguments.tensors;
  selection.from = arguments.from;
  report_source source;
  source.tensors = tensors_to_show(selection);
  for (const role_rule& rule : rules) require_match("--role", rule.pattern, source.tensors);
  source.all = collect(source.tensors, names_of(source.tensors), rules, {}, wanted, where);
  source.result = verdict_on(source.all.evidence, wanted);
  return source;
}

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

void check_picture(const std::string& name) {
  for (const char* known :
       {"", "loss-scale", "loss-scale-trace", "resolution", "exponents", "amax", "error"}) {
    if (name == known) return;
  }
  throw usage_error(
      cat("--svg: ", samebits::tensor_file::quote(name),
          " is none of loss-scale, loss-scale-trace, resolution, exponents, amax, error"));
}

}  // namespace

void run_report(const report_arguments& arguments, output& out) {
  check_picture(arguments.svg);
  const need wanted = need_argument(arguments.need);
  samebits::executor where = backend_argument("");
  where.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<scaler_row> trace;
  if (!arguments.loss_scale_trace.empty()) trace = read_scale_trace(arguments.loss_scale_trace);
  const output_file target("--out", arguments.out, {arguments.svg.empty() ? ".html" : ".svg"});
  report_source source = source_of(arguments, wanted, where);
  source.scale_trace = std::move(trace);
  const std::string document = arguments.svg.empty()
                                   ? page_of(source, where)
                                   : picture_of(source, arguments.svg, wanted, where).document();
  target.write({document}, out);
}

}  // namespace fpinspect
