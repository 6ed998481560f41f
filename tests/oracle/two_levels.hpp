// Scale rules with two levels: a scale of the tensor, and of each tile one in e4m3. Exact quotients and
// products, each rounded once to binary32, in the order of the table in samebits/core/scaling.hpp.
//
// Where the table leaves something open, this oracle reads it so:
// - A tile with nothing left has a = 0, and its scale follows by the formulas, also for zeros.
// - te with a = Inf gives s = r = 1 for these rules too.
// - "At most FLT_MAX" drops a NaN, as fmin() does.
#pragma once

#include <cstdint>
#include <span>

#include "oracle/format_table.hpp"
#include "oracle/scale.hpp"

namespace samebits::oracle {

bool is_two_level(scale_rule rule);

/// The tensor's scale from the amax of the tensor, 0 for one with nothing left.
std::uint32_t tensor_scale_of(scale_rule rule, const format& to, std::uint32_t amax);

/// The scale of a tile whose policies and bounds are behind it: any binary32 magnitude a. `elements`
/// are those of the tile, in rows of `columns`; read by four over six alone.
tile_scale two_level_scale(const scale_settings& settings, const format& to, std::uint32_t a,
                           std::span<const std::uint32_t> elements, std::size_t columns);

/// d: what the values of codes are multiplied by. s for a rule with one level.
std::uint32_t full_scale(scale_rule rule, const format& to, std::uint32_t tensor_scale,
                         std::uint32_t s);

}  // namespace samebits::oracle
