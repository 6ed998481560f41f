// Reductions over axes: names for what samebits/axis_reductions.hpp computes.
#pragma once

#include <cstdint>

#include "samebits/core/table.hpp"

namespace samebits {

/// What reduce_axes() computes of the elements of one result.
enum class axis_reduction : std::uint8_t {
  sum,
  mean,
  norm,  ///< the root of the sum of squares
};
template <>
inline constexpr auto table_of<axis_reduction> = enum_table<axis_reduction::norm>({"sum", "mean",
                                                                                   "norm"});

/// Axes of a tensor for reduce_axes(), at most.
inline constexpr int max_reduction_axes = 16;

}  // namespace samebits
