// Converts settings to rules, rules to settings, and settings to text.
#include "tensor_core_probe/settings/setting.hpp"

#include <algorithm>

#include "tensor_core_probe/settings/setting_grid.hpp"

namespace samebits {
namespace backends::tensor_cores {
namespace {

/// The minimum exponent that operands get, by the treatment of subnormals.
int subnormal_exponent_of(const format_spec& f, subnormal_operands how) {
  const int own = numerics::min_exponent(f);
  const int of_fp16 = numerics::min_exponent(spec_of(format_id::fp16));
  switch (how) {
    case subnormal_operands::as_they_are: return own;
    case subnormal_operands::as_fp16: return std::clamp(of_fp16, own - f.mantissa_bits, own);
    case subnormal_operands::normalized: return own - f.mantissa_bits;
  }
  return own;
}

/// The minimum exponent `minimum`, but not below the exponent of normalized subnormals.
int reached(const format_spec& f, int minimum) {
  return std::max(minimum, numerics::min_exponent(f) - f.mantissa_bits);
}

}  // namespace

numerics::accumulate_rule rule_of(const shape& s, const tensor_setting& setting) {
  numerics::accumulate_rule r{};
  r.a = spec_of(s.a);
  r.b = spec_of(s.b);
  r.result = spec_of(s.result);
  r.rounded = r.result;
  r.rounded.padding_bits = r.result.mantissa_bits - setting.fraction_bits;
  r.rounded.mantissa_bits = setting.fraction_bits;
  r.products = s.products;
  r.group = setting.group;
  r.alignment_bits = setting.alignment_bits;
  r.cut = setting.cut;
  r.rounding = setting.rounding;
  r.floor = setting.floor.value_or(no_floor);
  r.subnormal_exponent_a = subnormal_exponent_of(r.a, setting.subnormals);
  r.subnormal_exponent_b = subnormal_exponent_of(r.b, setting.subnormals);
  r.place = setting.place;
  r.order = setting.order;
  return r;
}

tensor_setting setting_of(const numerics::accumulate_rule& r) {
  tensor_setting s{};
  s.place = r.place;
  s.order = r.order;
  s.subnormals = subnormal_operands::as_they_are;
  for (const auto how : {subnormal_operands::as_fp16, subnormal_operands::normalized}) {
    if (subnormal_exponent_of(r.a, s.subnormals) == reached(r.a, r.subnormal_exponent_a) &&
        subnormal_exponent_of(r.b, s.subnormals) == reached(r.b, r.subnormal_exponent_b)) {
      break;
    }
    s.subnormals = how;
  }
  s.group = r.group;
  s.alignment_bits = r.alignment_bits;
  s.cut = r.cut;
  s.fraction_bits = r.rounded.mantissa_bits;
  s.rounding = r.rounding;
  if (r.floor != no_floor) s.floor = r.floor;
  return s;
}

std::uint32_t result_of(const numerics::accumulate_rule& rule, const case_codes& x) {
  std::array<numerics::tensor_operand, max_products> a{};
  std::array<numerics::tensor_operand, max_products> b{};
  for (std::size_t k = 0; k < static_cast<std::size_t>(rule.products); ++k) {
    a[k] = numerics::tensor_operand_of(rule.a, rule.subnormal_exponent_a, x.a[k]);
    b[k] = numerics::tensor_operand_of(rule.b, rule.subnormal_exponent_b, x.b[k]);
  }
  return numerics::accumulate(rule, a.data(), b.data(), rule.products, x.c);
}

}  // namespace backends::tensor_cores

std::string text_of(const tensor_setting& s) {
  using backends::tensor_cores::axis;
  const auto text = [&](axis a) {
    const auto& row = backends::tensor_cores::row_of(a);
    return row.text(row.value(s));
  };
  const bool as_they_are = s.subnormals == subnormal_operands::as_they_are;
  return detail::cat("group ", text(axis::group), ", kept ", text(axis::alignment), " ",
                     text(axis::cut), ", bits ", text(axis::fraction), " ", text(axis::round),
                     ", floor ", text(axis::floor), ", sum ", text(axis::place), ", ",
                     text(axis::order),
                     as_they_are ? "" : ", subnormals " + text(axis::subnormals));
}

}  // namespace samebits
