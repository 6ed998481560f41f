// `fpinspect verify --function-units`: compares the instructions of a GPU's function units with the
// model on all operands.
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "function_unit_probe/device.hpp"

namespace fpinspect {
namespace {

namespace units = samebits::function_units;

struct unit_finding {
  std::string_view instruction;
  units::comparison found;
};

std::string unit_row(std::string_view compared, std::string_view differed,
                     std::string_view instruction) {
  return right(compared, 12) + right(differed, 12) + "  " + std::string(instruction) + "\n";
}

std::string hex_text(std::uint32_t code) {
  char text[16];
  std::snprintf(text, sizeof text, "%08X", code);
  return text;
}

/// "3F000000: GPU 3FB504F4, model 3FB504F3"; empty if nothing differs.
std::string first_difference(const units::comparison& c) {
  if (c.differed == 0) return {};
  return cat(hex_text(c.operand), ": GPU ", hex_text(c.result), ", model ", hex_text(c.expected));
}

std::string finding_text(const unit_finding& f, const terminal& term) {
  std::string text =
      unit_row(std::to_string(f.found.compared), std::to_string(f.found.differed), f.instruction);
  if (f.found.differed == 0) return text;
  return term.painted(paint::bad, cat(text, std::string(26, ' '), first_difference(f.found), "\n"));
}

std::string document_of(const std::string& gpu, const std::vector<unit_finding>& findings) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("gpu", gpu);
  json.key("instructions");
  json.begin_array();
  for (const unit_finding& f : findings) {
    json.begin_object(json_writer::layout::one_line);
    json.member("instruction", f.instruction);
    json.member("compared", f.found.compared);
    json.member("differed", f.found.differed);
    json.member("first_difference", first_difference(f.found));
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.document();
}

}  // namespace

void run_verify_function_units(const verify_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  const units::device& gpu = units::current_device();
  const std::string description = gpu.description();
  if (!arguments.view.json) {
    out.write(description + "\n");
    out.write(term.painted(paint::heading, unit_row("compared", "differed", "instruction")));
  }
  std::vector<unit_finding> findings;
  std::uint64_t compared = 0, differed = 0;
  for (const units::instruction what : units::instructions_of(gpu)) {
    findings.push_back({units::name(what), gpu.compare(what)});
    compared += findings.back().found.compared;
    differed += findings.back().found.differed;
    if (!arguments.view.json) out.write(finding_text(findings.back(), term));
  }
  if (arguments.view.json) {
    out.write(document_of(description, findings));
  } else {
    out.write(term.painted(differed == 0 ? paint::good : paint::bad,
                           cat("\nfunction units: ", compared, " results compared, ", differed,
                               differed == 1 ? " differs\n" : " differ\n")));
  }
  out.flush();
  if (differed != 0) {
    throw check_failed(
        cat("verify: ", differed, differed == 1 ? " result differs" : " results differ"));
  }
}

}  // namespace fpinspect
