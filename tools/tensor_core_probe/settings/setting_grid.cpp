// The axes of the grid of settings, and settings by number.
#include "tensor_core_probe/settings/setting_grid.hpp"

#include <cstdlib>

#include "numerics/bits/layout.hpp"
#include "samebits/core/rounding.hpp"
#include "tensor_core_probe/settings/setting.hpp"

namespace samebits::backends::tensor_cores {

int value_of(const tensor_setting& s, axis of) {
  switch (of) {
    case axis::floor: return s.floor.value_or(no_floor);
    case axis::group: return s.group;
    case axis::alignment: return s.alignment_bits;
    case axis::fraction: return s.fraction_bits;
    case axis::round: return static_cast<int>(s.rounding);
    case axis::cut: return static_cast<int>(s.cut);
    case axis::subnormals: return static_cast<int>(s.subnormals);
    case axis::order: return static_cast<int>(s.order);
    case axis::place: return static_cast<int>(s.place);
  }
  return 0;
}

void set_value(tensor_setting& s, axis of, int value) {
  switch (of) {
    case axis::floor: s.floor = value == no_floor ? std::nullopt : std::optional(value); return;
    case axis::group: s.group = value; return;
    case axis::alignment: s.alignment_bits = value; return;
    case axis::fraction: s.fraction_bits = value; return;
    case axis::round: s.rounding = static_cast<rounding>(value); return;
    case axis::cut: s.cut = static_cast<rounding>(value); return;
    case axis::subnormals: s.subnormals = static_cast<subnormal_operands>(value); return;
    case axis::order: s.order = static_cast<product_order>(value); return;
    case axis::place: s.place = static_cast<sum_place>(value); return;
  }
}

std::string_view name(axis of) {
  static constexpr std::array<std::string_view, axis_count> names = {
      "floor", "group", "kept", "bits", "round", "cut", "subnormals", "order", "sum"};
  return names[static_cast<std::size_t>(of)];
}

std::string value_text(axis of, int value) {
  switch (of) {
    case axis::floor: return value == no_floor ? "none" : std::to_string(value);
    case axis::group:
    case axis::alignment:
    case axis::fraction: break;
    case axis::round:
    case axis::cut: return std::string(samebits::name(static_cast<rounding>(value)));
    case axis::subnormals:
      switch (static_cast<subnormal_operands>(value)) {
        case subnormal_operands::as_they_are: return "as they are";
        case subnormal_operands::as_fp16: return "as fp16";
        case subnormal_operands::normalized: return "normalized";
      }
      break;
    case axis::order:
      return static_cast<product_order>(value) == product_order::consecutive ? "consecutive"
                                                                             : "pairs of four";
    case axis::place:
      return static_cast<sum_place>(value) == sum_place::first_step ? "in the first step"
                                                                    : "added last";
  }
  return std::to_string(value);
}

setting_grid::setting_grid(const shape& s) : products_(s.products) {
  const auto axis_of = [this](axis a) -> std::vector<int>& {
    return values_[static_cast<std::size_t>(a)];
  };
  const bool wide = s.result == format_id::fp32;
  const int minimum = numerics::min_exponent(spec_of(s.result));
  axis_of(axis::floor).push_back(no_floor);
  for (int floor = minimum - 11; floor <= minimum; ++floor) axis_of(axis::floor).push_back(floor);
  for (int group = 1; group <= s.products; group *= 2) axis_of(axis::group).push_back(group);
  for (int bits = 8; bits <= 32; ++bits) axis_of(axis::alignment).push_back(bits);
  for (int bits = 10; bits <= (wide ? 23 : 10); ++bits) axis_of(axis::fraction).push_back(bits);
  const auto put = [&](axis a, auto... values) {
    (axis_of(a).push_back(static_cast<int>(values)), ...);
  };
  put(axis::round, rounding::toward_zero, rounding::nearest_even);
  put(axis::cut, rounding::toward_zero, rounding::nearest_even, rounding::downward);
  put(axis::order, product_order::consecutive, product_order::pairs_of_four);
  put(axis::place, sum_place::first_step, sum_place::last_addition);
  // Treatments of subnormals that give the same exponents count once.
  std::vector<numerics::accumulate_rule> seen;
  for (const auto how : {subnormal_operands::as_they_are, subnormal_operands::as_fp16,
                         subnormal_operands::normalized}) {
    tensor_setting setting{};
    setting.subnormals = how;
    const numerics::accumulate_rule rule = rule_of(s, setting);
    bool is_new = true;
    for (const numerics::accumulate_rule& r : seen) {
      is_new = is_new && (r.subnormal_exponent_a != rule.subnormal_exponent_a ||
                          r.subnormal_exponent_b != rule.subnormal_exponent_b);
    }
    if (is_new) put(axis::subnormals, how);
    seen.push_back(rule);
  }
}

std::uint64_t setting_grid::size() const {
  std::uint64_t size = 1;
  for (const auto& v : values_) size *= v.size();
  return size;
}

tensor_setting setting_grid::at(std::uint64_t i) const {
  tensor_setting s{};
  for (int a = 0; a < axis_count; ++a) {
    const auto& v = values_[static_cast<std::size_t>(a)];
    set_value(s, static_cast<axis>(a), v[i % v.size()]);
    i /= v.size();
  }
  return s;
}

bool setting_grid::is_distinct(const tensor_setting& s) const {
  const bool one_step = s.group == products_;
  return s.order == product_order::consecutive || (!one_step && products_ % 4 == 0);
}

std::array<int, 2> setting_grid::distance(const tensor_setting& x, const tensor_setting& y) {
  std::array<int, 2> d = {0, 0};
  for (int a = 0; a < axis_count; ++a) {
    const int by = value_of(x, static_cast<axis>(a)) - value_of(y, static_cast<axis>(a));
    d[0] += by != 0 ? 1 : 0;
    d[1] += std::abs(by);
  }
  return d;
}

}  // namespace samebits::backends::tensor_cores
