// Rules of products as text.
#include "samebits/product_rule.hpp"

#include <algorithm>

#include "backends/api/value_text.hpp"
#include "backends/dispatch/refuse.hpp"
#include "samebits/options.hpp"

namespace samebits {

std::string rule_text(const product_rule& rule) {
  const product_rule standard = {{rule.sum.kind}};
  const auto is_shown = [&](std::string_view name) {
    return name == "sum" || (name == "unit" && rule.sum.kind == accumulator_kind::tensor_core) ||
           (name == "order" && rule.sum.kind == accumulator_kind::ieee_fp32);
  };
  std::string text;
  for_each_option(rule, [&](const auto& row, const auto& value) {
    if (value == row.of(standard) && !is_shown(row.name)) return;
    text += (text.empty() ? "" : " ") + std::string(row.name) + "=" + backends::value_text(value);
  });
  return text;
}

product_rule parse_rule(std::string_view text) {
  const auto check = [&](bool ok, const char* expected) {
    require(ok, "rule: must ", expected, ", got '", text, "'");
  };
  check(text.starts_with("sum="), "start with sum=");
  product_rule rule = {accumulator::exact()};
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const std::size_t equals = word.find('=');
    check(equals != std::string_view::npos, "be NAME=VALUE with a space between two");
    set_option(rule, word.substr(0, equals), word.substr(equals + 1));
  }
  return rule;
}

}  // namespace samebits
