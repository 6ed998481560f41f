// The lists that tests run over: formats, their oracle rows, and cast rules.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/text.hpp"
#include "oracle/format_table.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::support {

/// The oracle's own row of a format; by name, since the two tables share nothing else.
inline const oracle::format& oracle_of(format_id f) {
  static const auto rows = [] {
    std::array<const oracle::format*, format_count> found{};
    for (int i = 0; i < format_count; ++i) {
      found[static_cast<std::size_t>(format_at(i))] = &oracle::format_named(name(format_at(i)));
    }
    return found;
  }();
  return *rows.at(static_cast<std::size_t>(f));
}

inline std::vector<format_id> all_formats() {
  std::vector<format_id> formats;
  for (int i = 0; i < format_count; ++i) formats.push_back(format_at(i));
  return formats;
}

/// Formats whose codes take at most `bits` bits of storage.
inline std::vector<format_id> formats_up_to(int bits) {
  std::vector<format_id> formats;
  for (const format_id f : all_formats()) {
    if (spec_of(f).storage_bits <= bits) formats.push_back(f);
  }
  return formats;
}

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

}  // namespace samebits::support
