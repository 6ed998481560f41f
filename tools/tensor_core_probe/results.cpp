// Recorded results of tensor cores: their text form, and their comparison with the reference rows.
#include <algorithm>
#include <sstream>

#include "backends/dispatch/refuse.hpp"
#include "tensor_core_probe/check.hpp"
#include "tensor_core_probe/finding.hpp"
#include "tensor_core_probe/instructions.hpp"

namespace samebits {
namespace {

using backends::tensor_cores::hexadecimal;
using backends::tensor_cores::max_products;
using backends::tensor_cores::observation;
using backends::tensor_cores::shape;
using detail::cat;

shape shape_of(const tensor_core_result& r) {
  return {r.a, r.b, r.result, static_cast<int>(r.a_codes.size())};
}

/// The reference row of a unit's instruction, or nothing if there is no such instruction.
std::optional<tensor_arithmetic> row_of(tensor_unit unit, const shape& s) {
  const auto operands = tensor_operands_of(s.a, s.b);
  const auto row = operands ? find_tensor_row(unit, *operands) : std::nullopt;
  if (!row || s.products == 0) return {};  // 0 stands for a missing narrow instruction
  if (s.products != row->products && s.products != row->narrow_products) return {};
  if (s.result != format_id::fp32 && s.result != format_id::fp16) return {};
  if (backends::tensor_cores::evidence_of(*row, s.result) == evidence::none) return {};
  return row;
}

std::string name_of(tensor_unit unit, const shape& s) {
  if (const auto i = backends::tensor_cores::find_instruction(unit, s)) {
    return std::string(backends::tensor_cores::name(*i));
  }
  return cat(s.a, " x ", s.b, " + ", s.result, ", ", s.products, " products");
}

observation observed(const tensor_core_result& r) {
  observation o{};
  std::copy(r.a_codes.begin(), r.a_codes.end(), o.x.a.begin());
  std::copy(r.b_codes.begin(), r.b_codes.end(), o.x.b.begin());
  o.x.c = r.c;
  o.d = r.d;
  return o;
}

/// Results of one instruction.
struct recorded {
  tensor_unit unit;
  shape operands;
  std::vector<const tensor_core_result*> results;
};

std::vector<recorded> sorted(std::span<const tensor_core_result> results) {
  std::vector<recorded> all;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const tensor_core_result& r = results[i];
    const shape s = shape_of(r);
    require(r.a_codes.size() == r.b_codes.size() && row_of(r.unit, s), "results[", i,
            "] must be of an instruction that its unit has, with as many codes of A as of B");
    const auto same = [&](const recorded& c) { return c.unit == r.unit && c.operands == s; };
    auto at = std::find_if(all.begin(), all.end(), same);
    if (at == all.end()) at = all.insert(all.end(), {r.unit, s, {}});
    at->results.push_back(&r);
  }
  return all;
}

}  // namespace

std::string text_of(const tensor_core_result& r) {
  std::string text = cat(r.unit, " ", r.a, " ", r.b, " ", r.result, " ", r.a_codes.size(), " ",
                         hexadecimal(r.c), " ", hexadecimal(r.d));
  for (std::size_t k = 0; k < r.a_codes.size(); ++k) {
    text += cat(" ", hexadecimal(r.a_codes[k]), " ", hexadecimal(r.b_codes[k]));
  }
  return text;
}

std::optional<tensor_core_result> parse_tensor_core_result(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::string unit_name, a_name, b_name, result_name;
  int products = 0;
  tensor_core_result r{};
  in >> unit_name >> a_name >> b_name >> result_name >> products >> std::hex >> r.c >> r.d;
  const auto unit = find_enumerator<tensor_unit>(unit_name);
  const auto a = find_format(a_name);
  const auto b = find_format(b_name);
  const auto result = find_format(result_name);
  if (!in || !unit || !a || !b || !result || products < 1 || products > max_products) return {};
  r.unit = *unit;
  r.a = *a;
  r.b = *b;
  r.result = *result;
  const auto count = static_cast<std::size_t>(products);
  while (!(in >> std::ws).eof()) {  // a failed number may end the line, too
    std::uint32_t a_code = 0, b_code = 0;
    if (!(in >> a_code >> b_code) || r.a_codes.size() == count) return {};
    r.a_codes.push_back(a_code);
    r.b_codes.push_back(b_code);
  }
  r.a_codes.resize(count);
  r.b_codes.resize(count);
  if (!row_of(r.unit, shape_of(r))) return {};
  return r;
}

std::vector<tensor_core_finding> check_tensor_core_results(
    std::span<const tensor_core_result> results, const tensor_core_check_options& options) {
  using namespace backends::tensor_cores;
  std::vector<tensor_core_finding> findings;
  for (const recorded& of : sorted(results)) {
    if (options.unit && *options.unit != of.unit) continue;
    const std::string instruction = name_of(of.unit, of.operands);
    if (!options.instruction.empty() && options.instruction != instruction) continue;
    const tensor_arithmetic row = *row_of(of.unit, of.operands);
    const shape& s = of.operands;
    const auto rule = numerics::accumulate_rule_of(row, s.a, s.b, s.result, s.products);
    tensor_core_finding finding = new_finding(instruction, row, s.result, true);
    std::vector<observation> seen;
    for (const tensor_core_result* r : of.results) {
      seen.push_back(observed(*r));
      const std::uint32_t expected = result_of(rule, seen.back().x);
      ++finding.compared;
      if (expected == r->d || finding.differed++ != 0) continue;
      finding.first_difference = difference_text("recorded", expected, *r);
    }
    if (finding.differed != 0 && options.fit) add_fit(finding, s, rule, seen);
    findings.push_back(std::move(finding));
    if (options.on_result) options.on_result(findings.back());
  }
  return findings;
}

}  // namespace samebits
