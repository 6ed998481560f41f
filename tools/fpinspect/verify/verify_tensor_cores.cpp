// `fpinspect verify --tensor-cores`: compares a GPU's instructions with the model, and shows which
// models would match.
#include "fpinspect/verify/verify_tensor_cores.hpp"

#include "fpinspect/cli/files.hpp"
#include "samebits/core/config.hpp"
#include "tensor_core_probe/check.hpp"

namespace fpinspect {
namespace {

namespace cores = backends::tensor_cores;

constexpr std::size_t margin = 24;  ///< indent of the lines below a finding

std::string finding_row(std::string_view compared, std::string_view differed, std::string_view unit,
                        std::string_view evidence, std::string_view instruction) {
  return right(compared, 12) + right(differed, 10) + "  " + left(unit, 20) + left(evidence, 13) +
         std::string(instruction) + "\n";
}

/// "9.0"
std::string capability_of(const tensor_core_gpu& gpu) { return cat(gpu.major, ".", gpu.minor); }

/// "NVIDIA H200, compute capability 9.0" and a newline.
std::string gpu_line(const tensor_core_gpu& gpu) {
  return cat(gpu.name, ", compute capability ", capability_of(gpu), "\n");
}

std::string heading_text(const std::optional<tensor_core_gpu>& gpu, const terminal& term) {
  return (gpu ? gpu_line(*gpu) : "") +
         term.painted(paint::heading,
                      finding_row("compared", "differed", "unit", "evidence", "instruction"));
}

std::string_view evidence_of(const tensor_core_finding& f) {
  return f.confirmed ? name(f.known) : "unconfirmed";
}

std::string fit_text(const cores::fit_result& f) {
  const std::string before(margin, ' ');
  const std::size_t exact = f.exact.size();
  std::string text =
      cat(before, "the row explains ", f.row_explains, " of ", f.searched, " results; ");
  if (exact != 0) {
    text += cat(exact, " of ", f.tried, " settings explain", exact == 1 ? "s" : "",
                " all, the nearest to the row:\n");
  } else {
    text += cat("none of ", f.tried, " settings explains all, the best found:\n");
  }
  for (const cores::tensor_fit& fit : f.best) {
    text += before + "  ";
    if (exact == 0) text += cat(fit.explained, ": ");
    text += cores::text_of(fit.rule) + "\n";
  }
  if (!f.open.empty()) text += cat(before, "left open: ", f.open, "\n");
  return text;
}

std::string finding_text(const tensor_core_finding& f, const terminal& term) {
  const std::string text = finding_row(std::to_string(f.compared), std::to_string(f.differed),
                                       name(f.unit), evidence_of(f), f.instruction);
  if (f.differed == 0) return f.confirmed ? text : term.painted(paint::caution, text);
  const std::string first = std::string(margin, ' ') + f.first_difference + "\n";
  return term.painted(paint::bad, text + first) + (f.fit ? fit_text(*f.fit) : "");
}

json_value setting_json(const cores::tensor_fit& fit) {
  const cores::accumulate_rule& r = fit.rule;
  const bool first = r.place == sum_place::first_step;
  const bool consecutive = r.order == product_order::consecutive;
  constexpr std::string_view subnormals[] = {"as_they_are", "as_fp16", "normalized"};
  return json_line({{"explained", fit.explained},
                    {"group", r.group},
                    {"alignment_bits", r.alignment_bits},
                    {"cut", name(r.cut)},
                    {"fraction_bits", r.rounded.mantissa_bits},
                    {"round", name(r.rounding)},
                    {"floor", r.floor == cores::no_floor ? std::nullopt : std::optional(r.floor)},
                    {"sum", first ? "first_step" : "last_addition"},
                    {"order", consecutive ? "consecutive" : "pairs_of_four"},
                    {"subnormals", subnormals[static_cast<std::size_t>(cores::subnormals_of(r))]}});
}

json_object finding_json(const tensor_core_finding& f) {
  json_object finding = {{"instruction", f.instruction},
                         {"unit", name(f.unit)},
                         {"evidence", name(f.known)},
                         {"confirmed", f.confirmed},
                         {"compared", f.compared},
                         {"differed", f.differed},
                         {"first_difference", f.first_difference}};
  if (!f.fit) return finding;
  return finding.add({{"searched", f.fit->searched},
                      {"row_explains", f.fit->row_explains},
                      {"settings_tried", f.fit->tried},
                      {"settings_exact", f.fit->exact.size()},
                      {"settings", json_rows(f.fit->best, setting_json)},
                      {"left_open", f.fit->open}});
}

/// The results in a file. Blank lines and lines that begin with # are skipped.
std::vector<tensor_core_result> results_in(const std::string& path) {
  const std::string text = read_text_file(path);
  std::vector<tensor_core_result> all;
  std::size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    auto result = parse_tensor_core_result(line);
    if (!result) refuse_line(path, number, "no result of a tensor core");
    all.push_back(std::move(*result));
  }
  return all;
}

/// The text of a recording: GPU and options, then the results.
std::string recording(const tensor_core_gpu& gpu, const tensor_core_check_options& options,
                      const std::vector<tensor_core_finding>& findings) {
  std::string text = cat("# fpinspect ", SAMEBITS_VERSION, " verify --tensor-cores --cases ",
                         options.cases, " --seed ", options.seed, "\n# ", gpu_line(gpu));
  for (const tensor_core_finding& f : findings) {
    for (const tensor_core_result& r : f.kept) text += text_of(r) + "\n";
  }
  return text;
}

}  // namespace

std::function<std::uint64_t(const session&)> add_tensor_core_check(option_list& list) {
  option_list& add = list.group("Tensor cores");
  auto& unit = add.optional_value("--unit", enumerator_argument<tensor_unit>,
                                  "Only this unit's instructions, see `fpinspect units`");
  auto& instruction = add.text("--instruction", "Only this one, such as wgmma_e4m3");
  auto& cases = add.value("--cases", integer(1, std::uint64_t{1} << 30),
                          "Of each of 20 families; a case makes 128 results", "8192");
  auto& seed = add.value("--seed", integer(), "Of the operands", "0");
  auto& record_file = add.text("--record", "FILE.txt to write some of the results to");
  auto& results_file = add.text("--results", "Check a file that --record wrote, without a GPU");
  add.group("");

  add.need({"--unit", "--instruction", "--cases", "--seed", "--record", "--results"},
           "--tensor-cores");
  add.exclude("--results", {"--record", "--cases", "--seed"});
  add.refuse([&] { return record_file == "-"; },
             "--record -: standard output has the report; name a file");
  return [&](const session& s) {
    const auto known = tensor_core_instruction_names();
    if (!instruction.empty() && !contains(known, instruction)) {
      refuse_name("--instruction", instruction, joined(known));
    }
    constexpr int recorded_cases = 4;
    tensor_core_check_options options;
    if (unit) options.unit = *unit;
    options.instruction = instruction;
    options.cases = cases;
    options.seed = seed;
    options.keep = record_file.empty() ? 0 : recorded_cases;
    std::optional<output_file> record;
    if (!record_file.empty()) record = output_file("--record", record_file, {".txt"});
    const bool from_file = !results_file.empty();
    const std::vector<tensor_core_result> recorded =
        from_file ? results_in(results_file) : std::vector<tensor_core_result>();
    std::optional<tensor_core_gpu> gpu;
    if (!from_file) gpu = current_tensor_core_gpu();
    if (!s.json) {
      options.on_result = [&, is_first = true](const tensor_core_finding& f) mutable {
        if (is_first) s.out.write(heading_text(gpu, s.term));
        is_first = false;
        s.out.write(finding_text(f, s.term));
        s.out.flush();
      };
    }
    const std::vector<tensor_core_finding> findings =
        from_file ? check_tensor_core_results(recorded, options) : check_tensor_cores(options);
    refuse_if(findings.empty(), "--results: the file has no results of what is asked for");
    std::uint64_t compared = 0;
    std::uint64_t differed = 0;
    for (const tensor_core_finding& f : findings) {
      compared += f.compared;
      differed += f.differed;
    }
    if (record) record->write({recording(*gpu, options, findings)}, s.out);
    if (s.json) {
      s.write_json({{"gpu", gpu ? std::optional(gpu->name) : std::nullopt},
                    {"compute_capability", gpu ? std::optional(capability_of(*gpu)) : std::nullopt},
                    {"instructions", json_rows(findings, finding_json)}});
    } else {
      s.out.write(verify_summary("\ntensor cores", compared, differed, s.term));
    }
    return differed;
  };
}

}  // namespace fpinspect
