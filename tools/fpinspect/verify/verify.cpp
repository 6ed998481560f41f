// `fpinspect verify`: compares every backend with the reference, bit for bit, on this machine, or a
// GPU's units with their models.
#include "samebits/verify.hpp"

#include "fpinspect/verify/verify_tensor_cores.hpp"
#include "function_unit_probe/device.hpp"

namespace fpinspect {
namespace {

namespace units = function_units;

// --- backends ----------------------------------------------------------------------------------

std::string comparison_row(std::string_view compared, std::string_view differed,
                           std::string_view backend, std::string_view what) {
  return cat(right(compared, 12), right(differed, 10), "  ", left(backend, 15), what, "\n");
}

bool is_skipped(const verification& entry) { return entry.compared == 0; }

std::string entry_text(const verification& entry, const terminal& term) {
  if (is_skipped(entry)) {
    return term.painted(paint::caution, comparison_row("-", "-", entry.backend, entry.what));
  }
  std::string text =
      comparison_row(cat(entry.compared), cat(entry.differed), entry.backend, entry.what);
  if (entry.differed == 0) return text;
  return term.painted(paint::bad, text + std::string(24, ' ') + entry.first_difference + "\n");
}

/// Totals over the entries of one backend.
struct total {
  std::string_view backend;
  std::uint64_t compared = 0;
  std::uint64_t differed = 0;
};

std::vector<total> totals_of(const std::vector<verification>& entries) {
  std::vector<total> totals;
  for (const verification& entry : entries) {
    if (is_skipped(entry)) continue;
    auto at = std::ranges::find(totals, entry.backend, &total::backend);
    if (at == totals.end()) at = totals.insert(at, {entry.backend});
    at->compared += entry.compared;
    at->differed += entry.differed;
  }
  return totals;
}

/// Compares the backends. Returns the number of results that differ.
std::uint64_t verify_backends(verify_options options, const session& s) {
  if (!s.json) {
    s.out.write(
        s.term.painted(paint::heading, comparison_row("compared", "differed", "backend", "what")));
    s.out.flush();
    options.on_result = [&](const verification& entry) {  // entries may be hours apart
      s.out.write(entry_text(entry, s.term));
      s.out.flush();
    };
  }
  const std::vector<verification> entries = samebits::verify(options);
  const std::vector<total> totals = totals_of(entries);
  if (s.json) {
    s.out.write(json_text(json_rows(entries, [](const verification& entry) {
      return json_line({{"backend", entry.backend},
                        {"what", entry.what},
                        {"compared", entry.compared},
                        {"differed", entry.differed}});
    })));
  } else {
    s.out.write(totals.empty() ? "\nnothing was compared: there is no backend but the reference\n"
                               : "\n");
    for (const total& t : totals) {
      s.out.write(verify_summary(t.backend, t.compared, t.differed, s.term));
    }
  }
  std::uint64_t differed = 0;
  for (const total& t : totals) differed += t.differed;
  return differed;
}

// --- function units of a GPU, and functions of rule exact there --------------------------------

/// What a comparison of one instruction or function found.
struct gpu_finding {
  std::string line;
  std::string beside;  ///< what is wrong with it; empty if nothing differs
  json_value json;
  std::uint64_t compared;
  std::uint64_t differed;
};

/// "3F000000: GPU 3FB504F4, model 3FB504F3"
template <class... Numbers>
std::string formatted(const char* format, Numbers... numbers) {
  char text[64];
  std::snprintf(text, sizeof text, format, numbers...);
  return text;
}

std::string unit_row(std::string_view compared, std::string_view differed,
                     std::string_view instruction) {
  return cat(right(compared, 12), right(differed, 12), "  ", instruction, "\n");
}

/// Compares an instruction with the model on all operands.
gpu_finding unit_finding(const units::device& gpu, units::instruction what) {
  const std::string_view name = units::name(what);
  const std::uint64_t compared = operands_of(what);
  const units::comparison found = gpu.compare(what);
  const std::string first =
      found.differed == 0
          ? ""
          : formatted("%08X: GPU %08X, model %08X", found.operand, found.result, found.expected);
  return {unit_row(cat(compared), cat(found.differed), name),
          first.empty() ? "" : std::string(26, ' ') + first,
          json_line({{"instruction", name},
                     {"compared", compared},
                     {"differed", std::uint64_t{found.differed}},
                     {"first_difference", first}}),
          compared, found.differed};
}

std::string sum_row(std::string_view operands, std::string_view sum, std::string_view name) {
  return cat(right(operands, 12), "  ", left(sum, 18), name, "\n");
}

/// Compares the sum of all results of a function with the sum of proved results.
gpu_finding sum_finding(const units::device& gpu, const numerics::real::exact_row& row) {
  const auto text = [](std::uint64_t sum) {
    return formatted("%016llX", static_cast<unsigned long long>(sum));
  };
  const std::string function = cat(row.of, row.gradient ? " gradient" : "");
  const std::uint64_t sum = gpu.exact_sum(row);
  const bool same = sum == row.sum;
  return {sum_row(cat(units::exact_operands), text(sum), function),
          same ? "" : cat(std::string(14, ' '), text(row.sum), " was expected"),
          json_line({{"function", function},
                     {"operands", units::exact_operands},
                     {"sum", text(sum)},
                     {"expected", text(row.sum)}}),
          units::exact_operands, same ? 0u : 1u};
}

/// Writes finding(gpu, one) of all. Returns the number of results or sums that differ.
/// @param key  of the findings in JSON
template <class Range, class Finding>
std::uint64_t verify_gpu(const units::device& gpu, const Range& all, const Finding& finding,
                         const char* key, const std::string& heading, const char* summary,
                         std::string_view noun, const session& s) {
  const std::string description = gpu.description();
  if (!s.json) s.out.write(description, "\n", s.term.painted(paint::heading, heading));
  std::uint64_t compared = 0, differed = 0;
  json_array findings;
  for (const auto& one : all) {
    const gpu_finding f = finding(gpu, one);
    compared += f.compared;
    differed += f.differed;
    findings.add(f.json);
    if (s.json) continue;
    s.out.write(f.beside.empty() ? f.line : s.term.painted(paint::bad, f.line, f.beside, "\n"));
  }
  if (s.json) {
    s.write_json({{"gpu", description}, {key, findings}});
  } else {
    s.out.write(verify_summary(summary, compared, differed, s.term, noun));
  }
  return differed;
}

std::uint64_t verify_function_units(const session& s) {
  const units::device& gpu = units::current_device();
  return verify_gpu(gpu, units::instructions_of(gpu), unit_finding, "instructions",
                    unit_row("compared", "differed", "instruction"), "\nfunction units", "", s);
}

std::uint64_t verify_exact_functions(const session& s) {
  return verify_gpu(units::current_device(), numerics::real::exact_rows, sum_finding, "functions",
                    sum_row("operands", "sum", "function"), "\nexact functions", " sum", s);
}

run_function verify_command(option_list& add) {
  auto& backend = add.text("--backend", "Only this one");
  auto& exhaustive = add.flag("--exhaustive", "All 2^32 fp32 inputs by every rule");
  auto& threads =
      add.value("--threads", integer(0, 4096), "CPU threads (0: one per hardware thread)", "0");
  auto& tensor_cores =
      add.flag("--tensor-cores", "The GPU's tensor cores with their model instead");
  auto& function_units =
      add.flag("--function-units", "The GPU's function units with their model instead");
  auto& exact_functions =
      add.flag("--exact-functions", "Sums of all results of rule exact on the GPU instead");
  auto& card = add.flag("--card", "The GPU by the three checks above, one after another, instead");

  add.exclude("--tensor-cores", {"--backend", "--exhaustive", "--threads"});
  add.exclude("--function-units", {"--backend", "--exhaustive", "--threads", "--tensor-cores"});
  add.exclude("--exact-functions",
              {"--backend", "--exhaustive", "--threads", "--tensor-cores", "--function-units"});
  add.exclude("--card", {"--backend", "--exhaustive", "--threads", "--tensor-cores",
                         "--function-units", "--exact-functions", "--json"});
  const auto verify_tensor_cores = add_tensor_core_check(add);
  return [&, verify_tensor_cores](const session& s) {
    std::uint64_t differed = 0;
    if (card || function_units) differed += verify_function_units(s);
    if (card || exact_functions) differed += verify_exact_functions(s);
    if (card || tensor_cores) differed += verify_tensor_cores(s);
    if (!(card || function_units || exact_functions || tensor_cores)) {
      verify_options options;
      options.threads = static_cast<int>(threads);
      if (!backend.empty()) options.backend = backend_argument(backend).backend;
      if (exhaustive) options.extent = verify_extent::exhaustive;
      differed = verify_backends(options, s);
    }
    if (differed == 0) return;
    const char* const what = exact_functions ? "sum" : "result";
    throw check_failed("verify: ", number_of(differed, what),
                       differed == 1 ? " differs" : " differ");
  };
}

const registered verify_here("verify", "Compare the backends with the reference, bit for bit", 170,
                             verify_command);

}  // namespace

std::string verify_summary(std::string_view what, std::uint64_t compared, std::uint64_t differed,
                           const terminal& term, std::string_view noun) {
  const std::string_view plural = noun.empty() || differed == 1 ? "" : "s";
  return term.painted(differed == 0 ? paint::good : paint::bad, what, ": ", compared,
                      " results compared, ", differed, noun, plural,
                      differed == 1 ? " differs\n" : " differ\n");
}

}  // namespace fpinspect
