// The mask of a full warp.
#pragma once

namespace samebits::cuda {

/// The mask of all 32 lanes, for the _sync functions of CUDA.
inline constexpr unsigned all_lanes = 0xFFFFFFFFu;

}  // namespace samebits::cuda
