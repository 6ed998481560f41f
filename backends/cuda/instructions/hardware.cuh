// hardware: the Arithmetic policy of kernels, by the GPU's binary32 and binary64 instructions. IEEE
// 754, rounded to nearest even, subnormals kept; a binary32 NaN result is 7FFFFFFF (CUDA C++
// Programming Guide, "Standard Functions"; checked by self_test.cu).
#pragma once

#include <cstdint>

#include "backends/cuda/instructions/arithmetic.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/binary64.hpp"
#include "numerics/arithmetic/by_definition.hpp"

namespace samebits::cuda {

/// The Arithmetic policy (numerics/arithmetic/by_definition.hpp) by the GPU's instructions. Host
/// code computes the binary32 operations in integers.
struct hardware {
  SAMEBITS_INLINE static std::uint32_t product(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
    return __float_as_uint(__fmul_rn(__uint_as_float(a), __uint_as_float(b)));
#else
    return numerics::binary32::multiply(a, b);
#endif
  }
  SAMEBITS_INLINE static std::uint32_t quotient(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
    return __float_as_uint(__fdiv_rn(__uint_as_float(a), __uint_as_float(b)));
#else
    return numerics::binary32::divide(a, b);
#endif
  }
  SAMEBITS_INLINE static std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
    return __float_as_uint(__fadd_rn(__uint_as_float(a), __uint_as_float(b)));
#else
    return numerics::binary32::add(a, b);
#endif
  }

  using partial_sum = double;
  __device__ __forceinline__ static partial_sum square(std::uint32_t x) {
    const double wide = static_cast<double>(__uint_as_float(x));
    return __dmul_rn(wide, wide);
  }
  __device__ __forceinline__ static partial_sum add_partial_sums(partial_sum a, partial_sum b) {
    return __dadd_rn(a, b);
  }
  __device__ __forceinline__ static partial_sum no_partial_sum() { return 0.0; }
  __device__ __forceinline__ static partial_sum from_bits(std::uint64_t bits) {
    return __longlong_as_double(static_cast<long long>(bits));
  }
  /// Every NaN becomes the canonical NaN.
  __device__ __forceinline__ static std::uint64_t bits(partial_sum a) {
    const auto bits = static_cast<std::uint64_t>(__double_as_longlong(a));
    return bits > numerics::binary64::inf ? numerics::binary64::nan : bits;
  }
};

/// Calls f with a value of the chosen Arithmetic policy.
template <class Function>
void with_arithmetic(arithmetic by, const Function& f) {
  if (by == arithmetic::hardware) return f(hardware{});
  f(numerics::by_definition{});
}

}  // namespace samebits::cuda
