// `fpinspect verify`: compares every backend with the reference, bit for bit, on this machine, or a
// GPU's units with their models.
#include "samebits/verify.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/command.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/verify/verify_tensor_cores.hpp"
#include "function_unit_probe/device.hpp"

namespace fpinspect {
namespace {

namespace units = samebits::function_units;
using samebits::verification;

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
    const auto same = [&](const total& t) { return t.backend == entry.backend; };
    auto at = std::find_if(totals.begin(), totals.end(), same);
    if (at == totals.end()) at = totals.insert(at, {entry.backend});
    at->compared += entry.compared;
    at->differed += entry.differed;
  }
  return totals;
}

/// Compares the backends. Returns the number of results that differ.
std::uint64_t verify_backends(samebits::verify_options options, const session& s) {
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

// --- function units of a GPU -------------------------------------------------------------------

struct unit_finding {
  std::string_view instruction;
  units::comparison found;

  /// "3F000000: GPU 3FB504F4, model 3FB504F3"; empty if nothing differs.
  [[nodiscard]] std::string first_difference() const {
    if (found.differed == 0) return {};
    char text[64];
    std::snprintf(text, sizeof text, "%08X: GPU %08X, model %08X", found.operand, found.result,
                  found.expected);
    return text;
  }
};

std::string unit_row(std::string_view compared, std::string_view differed,
                     std::string_view instruction) {
  return cat(right(compared, 12), right(differed, 12), "  ", instruction, "\n");
}

std::string finding_text(const unit_finding& f, const terminal& term) {
  const std::string text = unit_row(cat(f.found.compared), cat(f.found.differed), f.instruction);
  if (f.found.differed == 0) return text;
  return term.painted(paint::bad, cat(text, std::string(26, ' '), f.first_difference(), "\n"));
}

/// Compares the instructions with the model on all operands. Returns the number of results that
/// differ.
std::uint64_t verify_function_units(const session& s) {
  const units::device& gpu = units::current_device();
  const std::string description = gpu.description();
  if (!s.json) {
    s.out.write(description + "\n");
    s.out.write(s.term.painted(paint::heading, unit_row("compared", "differed", "instruction")));
  }
  std::uint64_t compared = 0, differed = 0;
  json_array instructions;
  for (const units::instruction what : units::instructions_of(gpu)) {
    const unit_finding f = {units::name(what), gpu.compare(what)};
    compared += f.found.compared;
    differed += f.found.differed;
    if (!s.json) s.out.write(finding_text(f, s.term));
    instructions.add(json_line({{"instruction", f.instruction},
                                {"compared", f.found.compared},
                                {"differed", f.found.differed},
                                {"first_difference", f.first_difference()}}));
  }
  if (s.json) {
    s.write_json({{"gpu", description}, {"instructions", instructions}});
  } else {
    s.out.write(verify_summary("\nfunction units", compared, differed, s.term));
  }
  return differed;
}

// --- functions of rule exact on a GPU ----------------------------------------------------------

std::string sum_text(std::uint64_t sum) {
  char text[32];
  std::snprintf(text, sizeof text, "%016llX", static_cast<unsigned long long>(sum));
  return text;
}

std::string sum_row(std::string_view operands, std::string_view sum, std::string_view name) {
  return cat(right(operands, 12), "  ", left(sum, 18), name, "\n");
}

std::string sum_finding_text(std::string_view name, std::uint64_t sum, std::uint64_t expected,
                             const terminal& term) {
  const std::string text = sum_row(cat(units::exact_operands), sum_text(sum), name);
  if (sum == expected) return text;
  return term.painted(paint::bad,
                      cat(text, std::string(14, ' '), sum_text(expected), " was expected\n"));
}

/// Compares the sums of all results with the sums of proved results. Returns the number of sums that
/// differ.
std::uint64_t verify_exact_functions(const session& s) {
  const units::device& gpu = units::current_device();
  const std::string description = gpu.description();
  if (!s.json) {
    s.out.write(description + "\n");
    s.out.write(s.term.painted(paint::heading, sum_row("operands", "sum", "function")));
  }
  std::uint64_t compared = 0, differed = 0;
  json_array functions;
  for (const samebits::numerics::real::exact_row& row : samebits::numerics::real::exact_rows) {
    const std::string function = cat(name(row.of), row.gradient ? " gradient" : "");
    const std::uint64_t sum = gpu.exact_sum(row.value);
    compared += units::exact_operands;
    differed += sum == row.sum ? 0u : 1u;
    if (!s.json) s.out.write(sum_finding_text(function, sum, row.sum, s.term));
    functions.add(json_line({{"function", function},
                             {"operands", units::exact_operands},
                             {"sum", sum_text(sum)},
                             {"expected", sum_text(row.sum)}}));
  }
  if (s.json) {
    s.write_json({{"gpu", description}, {"functions", functions}});
  } else {
    s.out.write(s.term.painted(differed == 0 ? paint::good : paint::bad,
                               cat("\nexact functions: ", compared, " results compared, ", differed,
                                   differed == 1 ? " sum differs\n" : " sums differ\n")));
  }
  return differed;
}

class verify_command final : public command {
 public:
  void options(option_list& add) override {
    add.text("--backend", backend_, "Only this one");
    add.flag("--exhaustive", exhaustive_, "All 2^32 fp32 inputs by every rule");
    constexpr std::uint64_t max_threads = 4096;
    add.value("--threads", threads_, integer(0, max_threads),
              "CPU threads (0: one per hardware thread)", "0");
    add.flag("--tensor-cores", tensor_cores_, "The GPU's tensor cores with their model instead");
    add.flag("--function-units", function_units_,
             "The GPU's function units with their model instead");
    add.flag("--exact-functions", exact_functions_,
             "Sums of all results of rule exact on the GPU instead");
    checked_.add_options(add);
    add.exclude("--tensor-cores", {"--backend", "--exhaustive", "--threads"});
    add.exclude("--function-units", {"--backend", "--exhaustive", "--threads", "--tensor-cores"});
    add.exclude("--exact-functions",
                {"--backend", "--exhaustive", "--threads", "--tensor-cores", "--function-units"});
    checked_.add_rules(add);
  }

  void run(const session& s) override {
    const std::uint64_t differed = tensor_cores_      ? checked_.verify(s)
                                   : exact_functions_ ? verify_exact_functions(s)
                                   : function_units_  ? verify_function_units(s)
                                                      : verify_backends(backend_options(), s);
    s.out.flush();
    if (differed == 0) return;
    const char* const what = exact_functions_ ? "sum" : "result";
    throw check_failed(
        cat("verify: ", number_of(differed, what), differed == 1 ? " differs" : " differ"));
  }

 private:
  [[nodiscard]] samebits::verify_options backend_options() const {
    samebits::verify_options options;
    options.threads = static_cast<int>(threads_);
    if (!backend_.empty()) options.backend = backend_argument(backend_).backend;
    if (exhaustive_) options.extent = samebits::verify_extent::exhaustive;
    return options;
  }

  std::string backend_;
  bool exhaustive_ = false;
  std::uint64_t threads_ = 0;
  bool tensor_cores_ = false;
  bool function_units_ = false;
  bool exact_functions_ = false;
  tensor_core_check checked_;
};

const registered<verify_command> verify_here("verify",
                                             "Compare the backends with the reference, bit for bit",
                                             170);

}  // namespace

std::string verify_summary(std::string_view what, std::uint64_t compared, std::uint64_t differed,
                           const terminal& term) {
  return term.painted(differed == 0 ? paint::good : paint::bad,
                      cat(what, ": ", compared, " results compared, ", differed,
                          differed == 1 ? " differs\n" : " differ\n"));
}

}  // namespace fpinspect
