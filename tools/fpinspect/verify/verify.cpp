// `fpinspect verify`: compares every backend with the reference, bit for bit, on this machine.
#include "samebits/verify.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"

namespace fpinspect {
namespace {

using samebits::verification;

bool is_skipped(const verification& entry) { return entry.compared == 0; }

std::string comparison_row(std::string_view compared, std::string_view differed,
                           std::string_view backend, std::string_view what) {
  return right(compared, 12) + right(differed, 10) + "  " + left(backend, 15) + std::string(what) +
         "\n";
}

std::string entry_text(const verification& entry, const terminal& term) {
  if (is_skipped(entry)) {
    return term.painted(paint::caution, comparison_row("-", "-", entry.backend, entry.what));
  }
  std::string text = comparison_row(std::to_string(entry.compared), std::to_string(entry.differed),
                                    entry.backend, entry.what);
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

void write_json(const std::vector<verification>& entries, output& out) {
  json_writer json;
  json.begin_array();
  for (const verification& entry : entries) {
    json.begin_object(json_writer::layout::one_line);
    json.member("backend", entry.backend);
    json.member("what", entry.what);
    json.member("compared", entry.compared);
    json.member("differed", entry.differed);
    json.end_object();
  }
  json.end_array();
  out.write(json.document());
}

void write_totals(const std::vector<total>& totals, const terminal& term, output& out) {
  out.write("\n");
  if (totals.empty()) out.write("nothing was compared: there is no backend but the reference\n");
  for (const total& t : totals) {
    out.write(term.painted(t.differed == 0 ? paint::good : paint::bad,
                           cat(t.backend, ": ", t.compared, " results compared, ", t.differed,
                               t.differed == 1 ? " differs\n" : " differ\n")));
  }
}

}  // namespace

void run_verify(const verify_arguments& arguments, output& out) {
  if (arguments.tensor_cores) return run_verify_tensor_cores(arguments, out);
  if (arguments.exact_functions) return run_verify_exact_functions(arguments, out);
  if (arguments.function_units) return run_verify_function_units(arguments, out);
  const terminal term(arguments.view);
  samebits::verify_options options;
  constexpr std::uint64_t max_threads = 4096;
  options.threads =
      static_cast<int>(unsigned_argument("--threads", arguments.threads, 0, max_threads));
  if (!arguments.backend.empty()) options.backend = backend_argument(arguments.backend).backend;
  if (arguments.exhaustive) options.extent = samebits::verify_extent::exhaustive;
  if (!arguments.view.json) {
    out.write(
        term.painted(paint::heading, comparison_row("compared", "differed", "backend", "what")));
    out.flush();
    options.on_result = [&](const verification& entry) {  // entries may be hours apart
      out.write(entry_text(entry, term));
      out.flush();
    };
  }
  const std::vector<verification> entries = samebits::verify(options);
  const std::vector<total> totals = totals_of(entries);
  if (arguments.view.json) {
    write_json(entries, out);
  } else {
    write_totals(totals, term, out);
  }
  out.flush();
  std::uint64_t differed = 0;
  for (const total& t : totals) differed += t.differed;
  if (differed != 0)
    throw check_failed(
        cat("verify: ", differed, differed == 1 ? " result differs" : " results differ"));
}

}  // namespace fpinspect
