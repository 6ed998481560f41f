// The fixed binary64 sum of contract §6 by the processor's additions, level by level.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace samebits::support {

/// The contract's words: neighbours 2j and 2j+1 level by level, a lone last one passes up. Every
/// NaN is 7FFFFFFFFFFFFFFF; nothing sums up to +0.
inline double level_by_level(std::vector<double> level) {
  if (level.empty()) return 0.0;
  for (; level.size() > 1; level.resize((level.size() + 1) / 2)) {
    for (std::size_t j = 0; j < level.size() / 2; ++j) level[j] = level[2 * j] + level[2 * j + 1];
    if (level.size() % 2 == 1) level[level.size() / 2] = level.back();
  }
  return std::isnan(level[0]) ? std::bit_cast<double>(0x7FFFFFFFFFFFFFFFu) : level[0];
}

}  // namespace samebits::support
