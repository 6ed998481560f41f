// Shared by the oracle's own tests: lists of rules, the fp64 entry point, reproducible bit
// patterns.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "oracle/convert.hpp"
#include "oracle/format_table.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::oracle::testing {

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

/// The code in `to` of the binary64 value x.
inline std::uint64_t cast(const char* to, double x, const cast_rule& rule = {},
                          const random_bits& bits = {}) {
  return convert(format_named("fp64"), format_named(to), std::bit_cast<std::uint64_t>(x), rule,
                 bits);
}

/// Codes of random bits, seeded by the standard's own mt19937_64, so the same everywhere.
inline std::vector<std::uint64_t> random_codes(std::size_t count, int storage_bits,
                                               std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<std::uint64_t> codes(count);
  for (std::uint64_t& code : codes) code = engine() >> (64 - storage_bits);
  return codes;
}

}  // namespace samebits::oracle::testing
