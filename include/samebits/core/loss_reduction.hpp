// Loss reduction: what cross_entropy() makes of the losses of its rows.
#pragma once

#include <cstdint>

#include "samebits/core/table.hpp"

namespace samebits {

/// PyTorch's argument `reduction`.
enum class loss_reduction : std::uint8_t {
  mean,  ///< over the rows that are not ignored
  sum,
  none,  ///< one loss for each row
};
template <>
inline constexpr auto table_of<loss_reduction> = enum_table<loss_reduction::none>({"mean", "sum",
                                                                                   "none"});

}  // namespace samebits
