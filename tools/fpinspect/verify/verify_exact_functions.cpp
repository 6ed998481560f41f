// `fpinspect verify --exact-functions`: compares the sums of all results of the rule `exact` on a
// GPU with the sums of proved results.
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "function_unit_probe/device.hpp"
#include "function_unit_probe/exact_sums.hpp"

namespace fpinspect {
namespace {

namespace units = samebits::function_units;

struct sum_finding {
  units::exact_sum expected;
  std::uint64_t sum;

  [[nodiscard]] bool differs() const { return sum != expected.sum; }
};

std::string sum_text(std::uint64_t sum) {
  char text[32];
  std::snprintf(text, sizeof text, "%016llX", static_cast<unsigned long long>(sum));
  return text;
}

std::string sum_row(std::string_view operands, std::string_view sum, std::string_view name) {
  return right(operands, 12) + "  " + left(sum, 18) + std::string(name) + "\n";
}

std::string finding_text(const sum_finding& f, const terminal& term) {
  std::string text =
      sum_row(std::to_string(units::exact_operands), sum_text(f.sum), f.expected.name);
  if (!f.differs()) return text;
  return term.painted(paint::bad,
                      cat(text, std::string(14, ' '), sum_text(f.expected.sum), " was expected\n"));
}

std::string document_of(const std::string& gpu, const std::vector<sum_finding>& findings) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("gpu", gpu);
  json.key("functions");
  json.begin_array();
  for (const sum_finding& f : findings) {
    json.begin_object(json_writer::layout::one_line);
    json.member("function", f.expected.name);
    json.member("operands", units::exact_operands);
    json.member("sum", sum_text(f.sum));
    json.member("expected", sum_text(f.expected.sum));
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.document();
}

}  // namespace

void run_verify_exact_functions(const verify_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  const units::device& gpu = units::current_device();
  const std::string description = gpu.description();
  if (!arguments.view.json) {
    out.write(description + "\n");
    out.write(term.painted(paint::heading, sum_row("operands", "sum", "function")));
  }
  std::vector<sum_finding> findings;
  int differed = 0;
  for (const units::exact_sum& expected : units::exact_sums) {
    findings.push_back({expected, gpu.exact_sum(expected.of)});
    differed += findings.back().differs() ? 1 : 0;
    if (!arguments.view.json) out.write(finding_text(findings.back(), term));
  }
  if (arguments.view.json) {
    out.write(document_of(description, findings));
  } else {
    const std::uint64_t compared = findings.size() * units::exact_operands;
    out.write(term.painted(
        differed == 0 ? paint::good : paint::bad,
        cat("\nexact functions: ", compared, " results compared, ", differed,
            differed == 1 ? " sum differs\n" : " sums differ\n")));
  }
  out.flush();
  if (differed != 0) {
    throw check_failed(cat("verify: ", differed, differed == 1 ? " sum differs" : " sums differ"));
  }
}

}  // namespace fpinspect
