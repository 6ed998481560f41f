// Warps: constants.
#pragma once

namespace samebits::cuda {

/// Mask of a full warp.
inline constexpr unsigned all_lanes = 0xFFFFFFFFu;

}  // namespace samebits::cuda
