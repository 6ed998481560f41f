// The mask of a full warp, exchanges between its lanes, and loads of what other blocks wrote.
#pragma once

#include <cstdint>
#include <type_traits>

namespace samebits::cuda {

/// The mask of all 32 lanes, for the _sync functions of CUDA.
inline constexpr unsigned all_lanes = 0xFFFFFFFFu;

/// The value held by the lane whose number differs in the bit `apart`.
template <class T>
__device__ __forceinline__ T of_lane(T x, int apart) {
  return __shfl_xor_sync(all_lanes, x, apart);
}

/// The sum over the lanes of a warp, in every lane.
__device__ __forceinline__ std::uint64_t warp_sum(std::uint64_t x) {
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) x += of_lane(x, apart);
  return x;
}

/// Loads what another block of the same launch wrote, past the L1 cache, which is not coherent.
/// Requires alignment to 16 bytes if the size is a multiple of 16, else to 8 bytes.
template <class T>
__device__ __forceinline__ T from_other_block(const T* p) {
  using word = std::conditional_t<sizeof(T) % 16 == 0, ulonglong2, unsigned long long>;
  static_assert(sizeof(T) % sizeof(word) == 0);
  alignas(sizeof(word)) T x;
#pragma unroll
  for (unsigned i = 0; i < sizeof(T) / sizeof(word); ++i) {
    reinterpret_cast<word*>(&x)[i] = __ldcg(reinterpret_cast<const word*>(p) + i);
  }
  return x;
}

}  // namespace samebits::cuda
