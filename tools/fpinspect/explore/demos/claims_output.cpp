// `fpinspect claims`: prints statements with the computations that refute them.
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/explore/demos/claims.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

std::vector<claim> chosen_claims(const std::vector<std::string>& names) {
  std::vector<claim> chosen;
  std::string known;
  for (const claim& each : claims()) known += cat(known.empty() ? "" : ", ", each.name);
  for (const std::string& name : names) {
    const std::size_t before = chosen.size();
    for (const claim& each : claims()) {
      if (each.name == name) chosen.push_back(each);
    }
    if (chosen.size() == before) {
      throw usage_error(
          cat("NAME: ", samebits::tensor_file::quote(name), " is not one of ", known));
    }
  }
  if (names.empty()) chosen.assign(claims().begin(), claims().end());
  return chosen;
}

void write_claims_json(const std::vector<claim>& chosen, output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.key("claims");
  json.begin_array();
  for (const claim& each : chosen) {
    const claim_evidence evidence = each.check();
    json.begin_object();
    json.member("name", each.name);
    json.member("statement", each.statement);
    json.member("source", each.source);
    json.member("refuted", evidence.refuted);
    json.key("figures");
    json.begin_object();
    for (const auto& [name, value] : evidence.figures) json.member(name, value);
    json.end_object();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out.write(json.document());
}

}  // namespace

void run_claims(const claims_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  const std::vector<claim> chosen = chosen_claims(arguments.names);
  if (arguments.view.json) return write_claims_json(chosen, out);
  bool first = true;
  for (const claim& each : chosen) {
    const claim_evidence evidence = each.check();
    out.write(cat(first ? "" : "\n", term.painted(paint::heading, each.name), ": \"",
                  each.statement, "\"\n"));
    for (const std::string& line : evidence.lines) out.write(cat("  ", line, "\n"));
    const std::string_view verdict = evidence.refuted ? "refuted" : "not refuted";
    out.write(cat("  ", term.painted(evidence.refuted ? paint::bad : paint::good, verdict), "   (",
                  each.source, ")\n"));
    first = false;
  }
}

}  // namespace fpinspect
