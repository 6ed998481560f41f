// The lists that tests run over: formats, their oracle rows, and cast rules.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "engine/core/text.hpp"
#include "oracle/cast_rules.hpp"
#include "oracle/format_table.hpp"
#include "samebits/core/format.hpp"

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

using oracle::deterministic_modes;
using oracle::deterministic_rules;
using oracle::nan_policies;
using oracle::overflow_policies;
using oracle::values_of;

}  // namespace samebits::support
