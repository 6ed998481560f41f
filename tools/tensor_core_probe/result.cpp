// Results of tensor cores as lines of text.
#include "tensor_core_probe/result.hpp"

#include <cstdio>
#include <sstream>

#include "samebits/core/cat.hpp"

namespace samebits {

std::string hexadecimal(std::uint32_t code) {
  char digits[16];
  (void)std::snprintf(digits, sizeof digits, "%X", code);
  return digits;
}

std::string text_of(const tensor_core_result& r) {
  const backends::tensor_cores::shape& s = r.operands;
  std::string text = detail::cat(r.unit, " ", s.a, " ", s.b, " ", s.result, " ", s.products, " ",
                                 hexadecimal(r.x.c), " ", hexadecimal(r.d));
  for (std::size_t k = 0; k < static_cast<std::size_t>(s.products); ++k) {
    text += detail::cat(" ", hexadecimal(r.x.a[k]), " ", hexadecimal(r.x.b[k]));
  }
  return text;
}

std::optional<tensor_core_result> parse_tensor_core_result(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::string unit_name, a_name, b_name, result_name;
  tensor_core_result r{};
  in >> unit_name >> a_name >> b_name >> result_name >> r.operands.products >> std::hex >> r.x.c >>
      r.d;
  const auto unit = find_enumerator<tensor_unit>(unit_name);
  const auto a = find_format(a_name);
  const auto b = find_format(b_name);
  const auto result = find_format(result_name);
  if (!in || !unit || !a || !b || !result) return {};
  r.unit = *unit;
  r.operands = {*a, *b, *result, r.operands.products};
  if (!find_row(r.unit, r.operands)) return {};
  for (int k = 0; !(in >> std::ws).eof(); ++k) {  // a failed number may end the line, too
    const auto at = static_cast<std::size_t>(k);
    if (k == r.operands.products || !(in >> r.x.a[at] >> r.x.b[at])) return {};
  }
  return r;
}

}  // namespace samebits
