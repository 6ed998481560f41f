// By definition: the Arithmetic policy that computes in integers.
//
// An Arithmetic policy is a struct of static functions: the binary32 operations and, where sums of
// squares are computed, binary64 sums. Code that is equal for all policies takes a policy as its
// template parameter `class Arithmetic`. All policies return equal bits:
//
//   numerics::by_definition   integers, constexpr, on host and device: the definition
//   cuda::hardware            a GPU's instructions (backends/cuda/instructions/hardware.cuh)
//   device::hardware          the same in PTX, for a user's kernels (device_quantize.cuh)
//   simd::hardware            SIMD lanes (backends/simd/lanes/hardware.hpp)
//
// A policy has only the functions that its users call. Operands and results are binary32 bits, or
// lanes of them:
//
//   product(a, b)  RN(a * b)        quotient(a, b)  RN(a / b)        sum(a, b)  RN(a + b)
//
// Sums of squares use a type `partial_sum`, a partial sum in binary64:
//
//   square(x)               RN64(x * x) of binary32 bits; exact
//   add_partial_sums(a, b)  RN64(a + b)
//   no_partial_sum()        +0, which stands for missing inputs: no sum of squares is below +0
//   bits(a)                 the binary64 bits of a partial sum
//   from_bits(bits)         the partial sum
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/sums/squares.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics {

/// The Arithmetic policy in integers. A partial sum of squares is binary64 bits.
struct by_definition {
  SAMEBITS_INLINE static constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) {
    return binary32::multiply(a, b);
  }
  SAMEBITS_INLINE static constexpr std::uint32_t quotient(std::uint32_t a, std::uint32_t b) {
    return binary32::divide(a, b);
  }
  SAMEBITS_INLINE static constexpr std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
    return binary32::add(a, b);
  }

  using partial_sum = std::uint64_t;
  SAMEBITS_HD static constexpr partial_sum square(std::uint32_t x) { return numerics::square(x); }
  SAMEBITS_HD static constexpr partial_sum add_partial_sums(partial_sum a, partial_sum b) {
    return numerics::add_squares(a, b);
  }
  SAMEBITS_HD static constexpr partial_sum no_partial_sum() { return 0; }
  SAMEBITS_HD static constexpr partial_sum from_bits(std::uint64_t bits) { return bits; }
  SAMEBITS_HD static constexpr std::uint64_t bits(partial_sum a) { return a; }
};

}  // namespace samebits::numerics
