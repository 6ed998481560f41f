// The axes of the grid of settings, and settings by number.
#include "tensor_core_probe/settings/setting_grid.hpp"

#include <cstdlib>

#include "numerics/bits/layout.hpp"
#include "samebits/core/rounding.hpp"
#include "tensor_core_probe/settings/setting.hpp"

namespace samebits::backends::tensor_cores {
namespace {

int number_of(const std::optional<int>& floor) { return floor.value_or(no_floor); }
template <class Parameter>
int number_of(Parameter value) {
  return static_cast<int>(value);
}

void put(std::optional<int>& floor, int value) {
  floor = value == no_floor ? std::nullopt : std::optional(value);
}
template <class Parameter>
void put(Parameter& to, int value) {
  to = static_cast<Parameter>(value);
}

std::string number_text(int value) { return value == no_floor ? "none" : std::to_string(value); }
std::string rounding_text(int value) {
  return std::string(samebits::name(static_cast<rounding>(value)));
}

// Indexed by enumerator.
constexpr const char* subnormals_words[] = {"as they are", "as fp16", "normalized"};
constexpr const char* order_words[] = {"consecutive", "pairs of four"};
constexpr const char* place_words[] = {"in the first step", "added last"};
template <auto& Words>
std::string word(int value) {
  return Words[value];
}

template <auto Parameter>
constexpr axis_row axis_of(std::string_view name, std::string (*text)(int)) {
  return {name, text, [](const tensor_setting& s) { return number_of(s.*Parameter); },
          [](tensor_setting& s, int value) { put(s.*Parameter, value); }, text == number_text};
}

constexpr axis_row axis_rows[axis_count] = {
    axis_of<&tensor_setting::floor>("floor", number_text),
    axis_of<&tensor_setting::group>("group", number_text),
    axis_of<&tensor_setting::alignment_bits>("kept", number_text),
    axis_of<&tensor_setting::fraction_bits>("bits", number_text),
    axis_of<&tensor_setting::rounding>("round", rounding_text),
    axis_of<&tensor_setting::cut>("cut", rounding_text),
    axis_of<&tensor_setting::subnormals>("subnormals", word<subnormals_words>),
    axis_of<&tensor_setting::order>("order", word<order_words>),
    axis_of<&tensor_setting::place>("sum", word<place_words>)};

}  // namespace

const axis_row& row_of(axis a) { return axis_rows[static_cast<std::size_t>(a)]; }

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
    row_of(static_cast<axis>(a)).set(s, v[i % v.size()]);
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
    const axis_row& row = row_of(static_cast<axis>(a));
    const int by = row.value(x) - row.value(y);
    d[0] += by != 0 ? 1 : 0;
    d[1] += std::abs(by);
  }
  return d;
}

}  // namespace samebits::backends::tensor_cores
