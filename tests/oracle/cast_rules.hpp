// The lists of cast rules that tests run over.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "samebits/core/rounding.hpp"

namespace samebits::oracle {

/// All rounding modes but stochastic.
inline constexpr auto deterministic_modes = [] {
  std::array<rounding, enum_count<rounding> - 1> modes{};
  std::size_t count = 0;
  for (const auto& row : table_of<rounding>) {
    if (row.value != rounding::stochastic) modes[count++] = row.value;
  }
  return modes;
}();

/// The values of an enum, in its order.
template <class Enum>
inline constexpr auto values_of = [] {
  std::array<Enum, enum_count<Enum>> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = table_of<Enum>[i].value;
  return values;
}();
inline constexpr auto overflow_policies = values_of<overflow>;
inline constexpr auto nan_policies = values_of<nan_policy>;

/// All deterministic rules.
inline std::vector<cast_rule> deterministic_rules() {
  std::vector<cast_rule> rules;
  for (const rounding mode : deterministic_modes) {
    for (const overflow policy : overflow_policies) {
      for (const nan_policy nan : nan_policies) rules.push_back({mode, policy, nan});
    }
  }
  return rules;
}

}  // namespace samebits::oracle
