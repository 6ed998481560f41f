// hardware: the GPU's own binary32 addition, multiplication and division. IEEE 754, rounded to
// nearest even, subnormals kept; a NaN result is 7FFFFFFF (CUDA C++ Programming Guide, "Standard
// Functions"; checked by self_test.cu).
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"

namespace samebits::cuda {

/// The Arithmetic policy that numerics/quantize/scale.hpp and rank_sum.hpp take as a template
/// argument. Operands and results are binary32 bits. Host code uses the definition in integers.
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
};

}  // namespace samebits::cuda
