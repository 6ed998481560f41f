// The parameters of an instruction's rule that a search varies, and the values that it tries.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numerics/hardware/accumulate.hpp"
#include "samebits/core/format.hpp"

namespace samebits::backends::tensor_cores {

using numerics::accumulate_rule;

/// A floor below every exponent.
inline constexpr int no_floor = -4096;

/// How an instruction treats subnormal operands.
enum class subnormal_operands : std::uint8_t {
  as_they_are,  ///< significands below 1 with the minimum exponent of their format
  as_fp16,      ///< normalized down to the minimum exponent of fp16
  normalized,
};
subnormal_operands subnormals_of(const accumulate_rule& rule);
void set_subnormals(accumulate_rule& rule, subnormal_operands how);

/// The number of mantissa bits that the sum of a step keeps.
void set_fraction_bits(accumulate_rule& rule, int bits);

/// A parameter of a rule as an integer: enums by their number.
struct parameter {
  std::string_view name;     ///< "kept"
  std::string (*text)(int);  ///< of a value: "24", "toward_zero", "none"
  int (*value)(const accumulate_rule&);
  void (*set)(accumulate_rule&, int);
  bool is_number;  ///< consecutive values are written as a range
};
inline constexpr int parameter_count = 9;
extern const std::array<parameter, parameter_count> parameters;

/// The values of every parameter that a search tries for a row's rule.
using parameter_values = std::array<std::vector<int>, parameter_count>;
parameter_values values_to_try(const accumulate_rule& row);

/// False if another combination of values is the same rule, and that one stands for both.
bool is_distinct(const accumulate_rule& rule);

/// The number of parameters in which two rules differ, and the sum of the differences.
std::array<int, 2> distance(const accumulate_rule& x, const accumulate_rule& y);

/// "group 8, kept 24 toward_zero, bits 23 toward_zero, floor -132, sum in the first step, ..."
std::string text_of(const accumulate_rule& rule);

/// Text of the parameters in which rules differ, with their values: "floor none, -137 to -126; sum
/// in the first step, added last". Ends with "; not in every combination" if some combinations of
/// the values are missing. Empty if there are none.
std::string open_parameters(std::span<const accumulate_rule> rules);

}  // namespace samebits::backends::tensor_cores
