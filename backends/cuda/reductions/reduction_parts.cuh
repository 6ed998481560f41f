// Device functions of the reductions: sums of numbers of either sign, products, and the warp's
// update of counts and amax in device memory.
#pragma once

#include <cstdint>

#include "backends/cuda/common/sum_tree.cuh"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/element_counts.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "samebits/core/format.hpp"
#include "samebits/reductions.hpp"

namespace samebits::cuda {

/// Threads of a block.
inline constexpr int reduction_threads = 256;

/// Additions of the tree of contract §6 in binary64 or binary32, for inputs of either sign. -0
/// stands for missing inputs: x + -0 is x, for both zeros as well. For the trees of sum_tree.cuh.
template <class Number>
struct signed_sums {
  using partial_sum = Number;
  __device__ __forceinline__ static partial_sum add_partial_sums(partial_sum a, partial_sum b) {
    if constexpr (sizeof(Number) == 8) {
      return __dadd_rn(a, b);
    } else {
      return __fadd_rn(a, b);
    }
  }
  __device__ __forceinline__ static partial_sum no_partial_sum() { return -Number{0}; }
};

/// RN(x * y).
template <class Number>
__device__ __forceinline__ Number product(float x, float y) {
  if constexpr (sizeof(Number) == 8) {
    return __dmul_rn(static_cast<double>(x), static_cast<double>(y));
  } else {
    return __fmul_rn(x, y);
  }
}

/// A sum as the call returns it, widened to binary64. A NaN becomes the canonical one of the format
/// that the sum was computed in.
template <class Number>
__device__ __forceinline__ double returned_sum(Number x) {
  if (x == x) return static_cast<double>(x);
  constexpr bool wide = sizeof(Number) == 8;
  return __longlong_as_double(wide ? 0x7FFFFFFFFFFFFFFFll : 0x7FFFFFFFE0000000ll);
}

using numerics::code_counts;

/// Adds the counts of a warp's threads to *result. All lanes must call.
__device__ __forceinline__ void add_counts(const code_counts& c, element_counts* result) {
  const auto add = [](std::uint32_t own, std::uint64_t& to) {
    const std::uint32_t all = __reduce_add_sync(all_lanes, own);
    if (threadIdx.x % 32 == 0 && all != 0) {
      atomicAdd(reinterpret_cast<unsigned long long*>(&to), static_cast<unsigned long long>(all));
    }
  };
  add(c.nan, result->nan);
  add(c.inf, result->inf);
  add(c.zeros, result->zeros);
  add(c.subnormals, result->subnormals);
}

/// Replaces *result by its maximum with `largest` of all lanes, a code without sign. All lanes must
/// call. As integers, binary32 bits of magnitudes are ordered, with the canonical NaN above all.
__device__ __forceinline__ void raise_amax(const format_spec& f, std::uint32_t largest,
                                           std::uint32_t* result) {
  const std::uint32_t all = __reduce_max_sync(all_lanes, largest);
  if (threadIdx.x % 32 != 0) return;
  const auto amax = numerics::binary32::amax_bits(numerics::decode<std::uint32_t>(f, all));
  if (amax != 0) atomicMax(result, amax);
}

}  // namespace samebits::cuda
