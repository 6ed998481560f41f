// update_hardware: the Arithmetic policy of optimizer steps by the GPU's instructions
// (numerics/update/update_arithmetic.hpp).
#pragma once

#include <cstdint>

#include "backends/cuda/instructions/hardware.cuh"
#include "numerics/update/update_arithmetic.hpp"
#include "samebits/core/config.hpp"

namespace samebits::cuda {

/// Every binary32 instruction returns the canonical NaN, so canonical() has nothing to do.
struct update_hardware : hardware {
  SAMEBITS_INLINE static std::uint32_t fused(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#if defined(__CUDA_ARCH__)
    return __float_as_uint(__fmaf_rn(__uint_as_float(a), __uint_as_float(b), __uint_as_float(c)));
#else
    return numerics::update_by_definition::fused(a, b, c);
#endif
  }
  SAMEBITS_INLINE static std::uint32_t square_root(std::uint32_t a) {
#if defined(__CUDA_ARCH__)
    return __float_as_uint(__fsqrt_rn(__uint_as_float(a)));
#else
    return numerics::update_by_definition::square_root(a);
#endif
  }
  SAMEBITS_INLINE static constexpr std::uint32_t canonical(std::uint32_t x) { return x; }
};

/// Whether a policy computes by the GPU's instructions.
template <class Arithmetic>
inline constexpr bool is_hardware = false;
template <>
inline constexpr bool is_hardware<update_hardware> = true;

}  // namespace samebits::cuda
