// Shared by the oracle's own tests: the fp64 entry point, reproducible bit patterns.
#pragma once

#include <bit>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "oracle/cast_rules.hpp"
#include "oracle/convert.hpp"
#include "oracle/format_table.hpp"

namespace samebits::oracle::testing {

/// The code in `to` of the binary64 value x.
inline std::uint64_t cast(const char* to, double x, const cast_rule& rule = {},
                          const random_bits& bits = {}) {
  return convert(format_named("fp64"), format_named(to), std::bit_cast<std::uint64_t>(x), rule,
                 bits);
}

/// Rounding modes that the machine has, with their names in <cfenv>.
inline constexpr std::pair<rounding, int> machine_modes[] = {{rounding::nearest_even, FE_TONEAREST},
                                                             {rounding::toward_zero, FE_TOWARDZERO},
                                                             {rounding::upward, FE_UPWARD},
                                                             {rounding::downward, FE_DOWNWARD}};

/// Codes of random bits, seeded by the standard's own mt19937_64, so the same everywhere.
inline std::vector<std::uint64_t> random_codes(std::size_t count, int storage_bits,
                                               std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<std::uint64_t> codes(count);
  for (std::uint64_t& code : codes) code = engine() >> (64 - storage_bits);
  return codes;
}

}  // namespace samebits::oracle::testing
