// The table of parameters, and the texts of their values.
#include "tensor_core_probe/parameters.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <type_traits>
#include <utility>

#include "numerics/bits/layout.hpp"
#include "samebits/core/cat.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::backends::tensor_cores {
namespace {

using enum subnormal_operands;

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

/// The row of a parameter that is a member of the rule.
template <auto Member>
constexpr parameter row_of(std::string_view name, std::string (*text)(int)) {
  using value_type = std::remove_reference_t<decltype(std::declval<accumulate_rule&>().*Member)>;
  return {name, text, [](const accumulate_rule& r) { return static_cast<int>(r.*Member); },
          [](accumulate_rule& r, int value) { r.*Member = static_cast<value_type>(value); },
          text == number_text};
}

/// The minimum exponent that operands get, by the treatment of subnormals.
int subnormal_exponent_of(const format_spec& f, subnormal_operands how) {
  const int own = numerics::min_exponent(f);
  const int lowest = own - f.mantissa_bits;
  if (how == as_they_are) return own;
  if (how == normalized) return lowest;
  return std::clamp(numerics::min_exponent(spec_of(format_id::fp16)), lowest, own);
}

/// Whether subnormals get the exponents of a treatment; no exponent is below that of the smallest.
bool treats(const accumulate_rule& r, subnormal_operands how) {
  const auto gets = [how](const format_spec& f, int exponent) {
    return std::max(exponent, subnormal_exponent_of(f, normalized)) ==
           subnormal_exponent_of(f, how);
  };
  return gets(r.a, r.subnormal_exponent_a) && gets(r.b, r.subnormal_exponent_b);
}

}  // namespace

subnormal_operands subnormals_of(const accumulate_rule& rule) {
  if (treats(rule, as_they_are)) return as_they_are;
  return treats(rule, as_fp16) ? as_fp16 : normalized;
}

void set_subnormals(accumulate_rule& rule, subnormal_operands how) {
  rule.subnormal_exponent_a = subnormal_exponent_of(rule.a, how);
  rule.subnormal_exponent_b = subnormal_exponent_of(rule.b, how);
}

void set_fraction_bits(accumulate_rule& rule, int bits) {
  rule.rounded.padding_bits = rule.result.mantissa_bits - bits;
  rule.rounded.mantissa_bits = bits;
}

const std::array<parameter, parameter_count> parameters = {
    row_of<&accumulate_rule::floor>("floor", number_text),
    row_of<&accumulate_rule::group>("group", number_text),
    row_of<&accumulate_rule::alignment_bits>("kept", number_text),
    parameter{"bits", number_text, [](const accumulate_rule& r) { return r.rounded.mantissa_bits; },
              set_fraction_bits, true},
    row_of<&accumulate_rule::rounding>("round", rounding_text),
    row_of<&accumulate_rule::cut>("cut", rounding_text),
    parameter{"subnormals", word<subnormals_words>,
              [](const accumulate_rule& r) { return static_cast<int>(subnormals_of(r)); },
              [](accumulate_rule& r, int value) {
                set_subnormals(r, static_cast<subnormal_operands>(value));
              },
              false},
    row_of<&accumulate_rule::order>("order", word<order_words>),
    row_of<&accumulate_rule::place>("sum", word<place_words>)};

parameter_values values_to_try(const accumulate_rule& row) {
  const auto range = [](int from, int to) {
    std::vector<int> all;
    for (int value = from; value <= to; ++value) all.push_back(value);
    return all;
  };
  const auto each = [](auto... values) { return std::vector{static_cast<int>(values)...}; };
  const int minimum = numerics::min_exponent(row.result);
  std::vector<int> floors = range(minimum - 12, minimum);
  floors.front() = no_floor;
  std::vector<int> groups;
  for (int group = 1; group <= row.products; group *= 2) groups.push_back(group);
  // Treatments of subnormals that give the same exponents count once.
  std::vector<int> subnormals;
  for (const auto how : {as_they_are, as_fp16, normalized}) {
    accumulate_rule rule = row;
    set_subnormals(rule, how);
    if (subnormals_of(rule) == how) subnormals.push_back(static_cast<int>(how));
  }
  return {floors,
          groups,
          range(8, 32),
          range(10, row.result.mantissa_bits),
          each(rounding::toward_zero, rounding::nearest_even),
          each(rounding::toward_zero, rounding::nearest_even, rounding::downward),
          subnormals,
          each(product_order::consecutive, product_order::pairs_of_four),
          each(sum_place::first_step, sum_place::last_addition)};
}

bool is_distinct(const accumulate_rule& rule) {
  const bool one_step = rule.group == rule.products;
  return rule.order == product_order::consecutive || (!one_step && rule.products % 4 == 0);
}

std::array<int, 2> distance(const accumulate_rule& x, const accumulate_rule& y) {
  std::array<int, 2> d = {0, 0};
  for (const parameter& p : parameters) {
    const int by = p.value(x) - p.value(y);
    d[0] += by != 0 ? 1 : 0;
    d[1] += std::abs(by);
  }
  return d;
}

std::string text_of(const accumulate_rule& rule) {
  const auto text = [&](std::string_view name) {
    const parameter& p = *std::ranges::find(parameters, name, &parameter::name);
    return p.text(p.value(rule));
  };
  const bool as_usual = subnormals_of(rule) == as_they_are;
  return detail::cat("group ", text("group"), ", kept ", text("kept"), " ", text("cut"), ", bits ",
                     text("bits"), " ", text("round"), ", floor ", text("floor"), ", sum ",
                     text("sum"), ", ", text("order"),
                     as_usual ? "" : ", subnormals " + text("subnormals"));
}

std::string open_parameters(std::span<const accumulate_rule> rules) {
  std::string text;
  std::size_t combinations = 1;
  for (const parameter& p : parameters) {
    std::set<int> values;
    for (const accumulate_rule& r : rules) values.insert(p.value(r));
    if (values.size() < 2) continue;
    combinations *= values.size();
    text += detail::cat(text.empty() ? "" : "; ", p.name, " ");
    for (auto from = values.begin(); from != values.end();) {
      int last = *from;  // of consecutive integers
      while (p.is_number && values.contains(last + 1)) ++last;
      text += (from == values.begin() ? "" : ", ") + p.text(*from);
      if (last != *from) text += " to " + p.text(last);
      from = values.upper_bound(last);
    }
  }
  if (!text.empty() && combinations != rules.size()) text += "; not in every combination";
  return text;
}

}  // namespace samebits::backends::tensor_cores
