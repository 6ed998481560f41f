// Random scenarios of loss scalers.
#pragma once

#include <vector>

#include "engine/cases/scaler_scenario.hpp"
#include "engine/core/choices.hpp"

namespace samebits::support {

/// A scenario with all gradients on one rank.
scaler_scenario draw_scenario(const word_source& next);
/// A scenario with gradients spread over ranks.
scaler_scenario draw_sharded(const word_source& next);

/// A tensor of so many elements, cut for ranks on borders of chunks at random.
scenario_tensor cut_tensor(format_id format, std::int64_t cols, int ranks, const word_source& next);
/// Each policy through many steps on few gradients.
std::vector<scaler_scenario> long_scenarios(std::size_t steps);
/// Gradients spread over ranks: long tensors, 3000 tensors of one rank each, ranks without elements.
std::vector<scaler_scenario> large_shards();

}  // namespace samebits::support
