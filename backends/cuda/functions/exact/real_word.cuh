// Real word: the Word of numerics/functions/ by a GPU's binary64 instructions, for cuda-native.
#pragma once

#include <cstdint>

#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"

namespace samebits::cuda {

/// The bits of a binary64 number. Each step is one instruction or CUDA's correctly rounded
/// function; none can be contracted.
struct real_word {
  std::uint64_t bits;

  real_word() = default;
  SAMEBITS_INLINE constexpr real_word(std::uint64_t x)  // NOLINT(google-explicit-constructor)
      : bits(x) {}
  // In the body, since nvcc keeps initializers of device constructors in host code.
  __device__ __forceinline__ explicit real_word(double x) {
    bits = static_cast<std::uint64_t>(__double_as_longlong(x));
  }
  [[nodiscard]] __device__ __forceinline__ double number() const {
    return __longlong_as_double(static_cast<long long>(bits));
  }

  // Operators of integers.
  SAMEBITS_INLINE friend real_word operator+(real_word a, real_word b) { return a.bits + b.bits; }
  SAMEBITS_INLINE friend real_word operator-(real_word a, real_word b) { return a.bits - b.bits; }
  SAMEBITS_INLINE friend real_word operator&(real_word a, real_word b) { return a.bits & b.bits; }
  SAMEBITS_INLINE friend real_word operator|(real_word a, real_word b) { return a.bits | b.bits; }
  SAMEBITS_INLINE friend real_word operator<<(real_word a, real_word n) { return a.bits << n.bits; }
  SAMEBITS_INLINE friend real_word operator>>(real_word a, real_word n) { return a.bits >> n.bits; }
  SAMEBITS_INLINE friend bool operator==(real_word a, real_word b) { return a.bits == b.bits; }
  SAMEBITS_INLINE friend bool operator!=(real_word a, real_word b) { return a.bits != b.bits; }
  SAMEBITS_INLINE friend bool operator<(real_word a, real_word b) { return a.bits < b.bits; }
  SAMEBITS_INLINE friend bool operator>(real_word a, real_word b) { return a.bits > b.bits; }
  SAMEBITS_INLINE friend real_word select(bool m, real_word a, real_word b) {
    return m ? a.bits : b.bits;
  }

  // Steps of numerics/functions/binary64_steps.hpp.
  __device__ __forceinline__ friend real_word fma(real_word a, real_word b, real_word c) {
    return real_word(__fma_rn(a.number(), b.number(), c.number()));
  }
  __device__ __forceinline__ friend real_word add(real_word a, real_word b) {
    return real_word(__dadd_rn(a.number(), b.number()));
  }
  __device__ __forceinline__ friend real_word sub(real_word a, real_word b) {
    return real_word(__dsub_rn(a.number(), b.number()));
  }
  __device__ __forceinline__ friend real_word mul(real_word a, real_word b) {
    return real_word(__dmul_rn(a.number(), b.number()));
  }
  __device__ __forceinline__ friend real_word div(real_word a, real_word b) {
    return real_word(__ddiv_rn(a.number(), b.number()));
  }
  __device__ __forceinline__ friend real_word sqrt(real_word a) {
    return real_word(__dsqrt_rn(a.number()));
  }
  SAMEBITS_INLINE friend real_word neg(real_word a) { return a.bits ^ 0x8000000000000000u; }
  __device__ __forceinline__ friend bool lt(real_word a, real_word b) {
    return a.number() < b.number();
  }
};

}  // namespace samebits::cuda

namespace samebits::numerics {

template <>
struct word_traits<cuda::real_word> {
  using mask = bool;
  using element = std::uint64_t;
};

}  // namespace samebits::numerics
