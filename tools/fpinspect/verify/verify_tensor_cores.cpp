// `fpinspect verify --tensor-cores`: compares a GPU's instructions with the model, and shows which
// models would match.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/files.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "samebits/core/config.hpp"
#include "tensor_core_probe/check.hpp"
#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

using samebits::tensor_core_finding;
using samebits::tensor_core_result;

constexpr std::size_t margin = 24;  ///< indent of the lines below a finding

std::string finding_row(std::string_view compared, std::string_view differed, std::string_view unit,
                        std::string_view evidence, std::string_view instruction) {
  return right(compared, 12) + right(differed, 10) + "  " + left(unit, 20) + left(evidence, 13) +
         std::string(instruction) + "\n";
}

std::string heading_text(const std::optional<samebits::tensor_core_gpu>& gpu,
                         const terminal& term) {
  const std::string of =
      gpu ? cat(gpu->name, ", compute capability ", gpu->major, ".", gpu->minor, "\n") : "";
  return of + term.painted(paint::heading,
                           finding_row("compared", "differed", "unit", "evidence", "instruction"));
}

std::string_view evidence_of(const tensor_core_finding& f) {
  return f.confirmed ? samebits::name(f.known) : "unconfirmed";
}

std::string fit_text(const tensor_core_finding& f) {
  const std::string before(margin, ' ');
  std::string text =
      cat(before, "the row explains ", f.row_explains, " of ", f.searched, " results; ");
  if (f.exact != 0) {
    text += cat(f.exact, " of ", f.tried, " settings explain", f.exact == 1 ? "s" : "",
                " all, the nearest to the row:\n");
  } else {
    text += cat("none of ", f.tried, " settings explains all, the best found:\n");
  }
  for (const samebits::tensor_fit& fit : f.fits) {
    text += before + "  ";
    if (f.exact == 0) text += cat(fit.explained, ": ");
    text += samebits::text_of(fit.setting) + "\n";
  }
  if (!f.open.empty()) text += cat(before, "left open: ", f.open, "\n");
  return text;
}

std::string finding_text(const tensor_core_finding& f, const terminal& term) {
  const std::string text = finding_row(std::to_string(f.compared), std::to_string(f.differed),
                                       samebits::name(f.unit), evidence_of(f), f.instruction);
  if (f.differed == 0) return f.confirmed ? text : term.painted(paint::caution, text);
  const std::string first = std::string(margin, ' ') + f.first_difference + "\n";
  return term.painted(paint::bad, text + first) + (f.searched != 0 ? fit_text(f) : "");
}

void write_setting(const samebits::tensor_fit& fit, json_writer& json) {
  using samebits::name;
  const samebits::tensor_setting& s = fit.setting;
  json.begin_object(json_writer::layout::one_line);
  json.member("explained", fit.explained);
  json.member("group", s.group);
  json.member("alignment_bits", s.alignment_bits);
  json.member("cut", name(s.cut));
  json.member("fraction_bits", s.fraction_bits);
  json.member("round", name(s.rounding));
  json.member("floor", s.floor);
  json.member("sum", s.place == samebits::sum_place::first_step ? "first_step" : "last_addition");
  json.member("order",
              s.order == samebits::product_order::consecutive ? "consecutive" : "pairs_of_four");
  json.member("subnormals", s.subnormals == samebits::subnormal_operands::as_they_are
                                ? "as_they_are"
                            : s.subnormals == samebits::subnormal_operands::as_fp16 ? "as_fp16"
                                                                                    : "normalized");
  json.end_object();
}

void write_finding(const tensor_core_finding& f, json_writer& json) {
  json.begin_object();
  json.member("instruction", f.instruction);
  json.member("unit", samebits::name(f.unit));
  json.member("evidence", samebits::name(f.known));
  json.member("confirmed", f.confirmed);
  json.member("compared", f.compared);
  json.member("differed", f.differed);
  json.member("first_difference", f.first_difference);
  if (f.searched != 0) {
    json.member("searched", f.searched);
    json.member("row_explains", f.row_explains);
    json.member("settings_tried", f.tried);
    json.member("settings_exact", f.exact);
    json.key("settings");
    json.begin_array();
    for (const samebits::tensor_fit& fit : f.fits) write_setting(fit, json);
    json.end_array();
    json.member("left_open", f.open);
  }
  json.end_object();
}

void write_findings(const std::optional<samebits::tensor_core_gpu>& gpu,
                    const std::vector<tensor_core_finding>& findings, output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  if (gpu) {
    json.member("gpu", gpu->name);
    json.member("compute_capability", cat(gpu->major, ".", gpu->minor));
  } else {
    json.member("gpu", std::nullopt);
    json.member("compute_capability", std::nullopt);
  }
  json.key("instructions");
  json.begin_array();
  for (const tensor_core_finding& f : findings) write_finding(f, json);
  json.end_array();
  json.end_object();
  out.write(json.document());
}

/// The results in a file. Blank lines and lines that begin with # are skipped.
std::vector<tensor_core_result> results_in(const std::string& path) {
  const std::string text = read_text_file(path);
  std::vector<tensor_core_result> all;
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    auto result = samebits::parse_tensor_core_result(line);
    if (!result) {
      throw samebits::tensor_file::file_error(
          samebits::tensor_file::error_kind::malformed,
          cat(samebits::tensor_file::escape_path(path), ", line ", number,
              ": no result of a tensor core"));
    }
    all.push_back(std::move(*result));
  }
  return all;
}

/// The text of a recording: GPU and options, then the results.
std::string recording(const samebits::tensor_core_gpu& gpu,
                      const samebits::tensor_core_check_options& options,
                      const std::vector<tensor_core_finding>& findings) {
  std::string text = cat("# fpinspect ", SAMEBITS_VERSION, " verify --tensor-cores --cases ",
                         options.cases, " --seed ", options.seed, "\n# ", gpu.name,
                         ", compute capability ", gpu.major, ".", gpu.minor, "\n");
  for (const tensor_core_finding& f : findings) {
    for (const tensor_core_result& r : f.kept) text += samebits::text_of(r) + "\n";
  }
  return text;
}

void check_instruction(const std::string& name) {
  if (name.empty()) return;
  std::string names;
  for (const std::string_view known : samebits::tensor_core_instruction_names()) {
    if (known == name) return;
    names += cat(names.empty() ? "" : ", ", known);
  }
  throw usage_error(
      cat("--instruction: ", samebits::tensor_file::quote(name), " is not one of ", names));
}

samebits::tensor_core_check_options options_of(const verify_arguments& arguments) {
  check_instruction(arguments.instruction);
  constexpr std::uint64_t max_cases = std::uint64_t{1} << 30;
  constexpr int recorded = 4;
  samebits::tensor_core_check_options options;
  if (!arguments.unit.empty()) options.unit = unit_argument("--unit", arguments.unit);
  options.instruction = arguments.instruction;
  options.cases = unsigned_argument("--cases", arguments.cases, 1, max_cases);
  options.seed = unsigned_argument("--seed", arguments.seed);
  options.keep = arguments.record.empty() ? 0 : recorded;
  return options;
}

}  // namespace

void run_verify_tensor_cores(const verify_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  samebits::tensor_core_check_options options = options_of(arguments);
  const bool from_file = !arguments.results.empty();
  std::optional<output_file> record;
  if (!arguments.record.empty()) record = output_file("--record", arguments.record, {".txt"});
  const std::vector<tensor_core_result> recorded =
      from_file ? results_in(arguments.results) : std::vector<tensor_core_result>();
  std::optional<samebits::tensor_core_gpu> gpu;
  if (!from_file) gpu = samebits::current_tensor_core_gpu();
  if (!arguments.view.json) {
    options.on_result = [&, is_first = true](const tensor_core_finding& f) mutable {
      if (is_first) out.write(heading_text(gpu, term));
      is_first = false;
      out.write(finding_text(f, term));
      out.flush();
    };
  }
  const std::vector<tensor_core_finding> findings =
      from_file ? samebits::check_tensor_core_results(recorded, options)
                : samebits::check_tensor_cores(options);
  if (findings.empty()) {
    throw usage_error("--results: the file has no results of what is asked for");
  }
  std::uint64_t compared = 0;
  std::uint64_t differed = 0;
  for (const tensor_core_finding& f : findings) {
    compared += f.compared;
    differed += f.differed;
  }
  if (record) record->write({recording(*gpu, options, findings)}, out);
  if (arguments.view.json) {
    write_findings(gpu, findings, out);
  } else {
    out.write(term.painted(differed == 0 ? paint::good : paint::bad,
                           cat("\ntensor cores: ", compared, " results compared, ", differed,
                               differed == 1 ? " differs\n" : " differ\n")));
  }
  out.flush();
  if (differed != 0) {
    throw check_failed(
        cat("verify: ", differed, differed == 1 ? " result differs" : " results differ"));
  }
}

}  // namespace fpinspect
