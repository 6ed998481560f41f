// Creates findings, describes differences, and adds the results of a parameter search.
#include "tensor_core_probe/finding.hpp"

#include <cstdio>

#include "tensor_core_probe/instructions.hpp"

namespace samebits::backends::tensor_cores {

tensor_core_finding new_finding(std::string_view instruction, const tensor_arithmetic& row,
                                format_id result, bool listed) {
  tensor_core_finding f{};
  f.instruction = instruction;
  f.unit = row.unit;
  f.known = evidence_of(row, result);
  f.confirmed = listed && (f.known == evidence::hardware || f.known == evidence::published);
  return f;
}

tensor_core_result result_of_case(tensor_unit unit, const shape& s, const case_codes& x,
                                  std::uint32_t d) {
  return {unit,
          s.a,
          s.b,
          s.result,
          {x.a.begin(), x.a.begin() + s.products},
          {x.b.begin(), x.b.begin() + s.products},
          x.c,
          d};
}

std::string hexadecimal(std::uint32_t code) {
  char digits[16];
  (void)std::snprintf(digits, sizeof digits, "%X", code);
  return digits;
}

std::string difference_text(std::string_view of, std::uint32_t expected,
                            const tensor_core_result& got) {
  return samebits::detail::cat(of, ": got ", hexadecimal(got.d), ", expected ",
                               hexadecimal(expected), ": ", text_of(got));
}

void add_fit(tensor_core_finding& finding, const shape& s, const numerics::accumulate_rule& rule,
             std::span<const observation> seen) {
  const fit_result found = fit(s, setting_of(rule), seen);
  finding.searched = seen.size();
  finding.row_explains = found.row_explains;
  finding.tried = found.tried;
  finding.exact = found.exact.size();
  if (found.exact.empty()) {
    finding.fits = found.best;
  } else {
    finding.fits = {{found.exact.front(), seen.size()}};
    finding.open = open_parameters(found.exact);
  }
}

}  // namespace samebits::backends::tensor_cores
