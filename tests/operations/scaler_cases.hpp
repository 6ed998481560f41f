// Random scenarios of loss scalers, and simpler scenarios than a failing one.
#pragma once

#include <cstdint>
#include <vector>

#include "operations/scaler_scenario.hpp"
#include "support/array_generators.hpp"

namespace samebits::support {

/// A random number in [0, limit).
inline std::int64_t below(std::int64_t limit, const word_source& next) {
  return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(limit));
}

/// A scenario with all gradients on one rank.
scaler_scenario draw_scenario(const word_source& next);
/// A scenario with gradients spread over ranks.
scaler_scenario draw_sharded(const word_source& next);

/// Simpler scenarios than c, each by one change.
std::vector<scaler_scenario> simpler_scenarios(const scaler_scenario& c);

}  // namespace samebits::support
