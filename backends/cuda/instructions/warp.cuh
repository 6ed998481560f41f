// The mask of a full warp, and exchanges between its lanes.
#pragma once

namespace samebits::cuda {

/// The mask of all 32 lanes, for the _sync functions of CUDA.
inline constexpr unsigned all_lanes = 0xFFFFFFFFu;

/// The value held by the lane whose number differs in the bit `apart`.
template <class T>
__device__ __forceinline__ T of_lane(T x, int apart) {
  return __shfl_xor_sync(all_lanes, x, apart);
}

}  // namespace samebits::cuda
