// Step word: the Word of numerics/bits/word.hpp that evaluates functions in kernels. Its steps and
// function units are those of a policy `Steps`: the definition or the GPU's instructions.
#pragma once

#include <cstdint>

#include "numerics/bits/word.hpp"
#include "numerics/hardware/cuda_functions/two_over_pi.hpp"
#include "samebits/core/config.hpp"

namespace samebits::cuda {

/// 32 bits: a binary32 number or an integer. `Steps` has the steps of
/// numerics/hardware/cuda_functions/steps.hpp, and the units, as static functions of std::uint32_t.
template <class Steps>
struct step_word {
  std::uint32_t bits;

  step_word() = default;
  SAMEBITS_INLINE constexpr step_word(std::uint32_t x)  // NOLINT(google-explicit-constructor)
      : bits(x) {}

  // Operators of integers.
  SAMEBITS_INLINE friend step_word operator+(step_word a, step_word b) { return a.bits + b.bits; }
  SAMEBITS_INLINE friend step_word operator-(step_word a, step_word b) { return a.bits - b.bits; }
  SAMEBITS_INLINE friend step_word operator&(step_word a, step_word b) { return a.bits & b.bits; }
  SAMEBITS_INLINE friend step_word operator|(step_word a, step_word b) { return a.bits | b.bits; }
  SAMEBITS_INLINE friend step_word operator<<(step_word a, step_word n) { return a.bits << n.bits; }
  SAMEBITS_INLINE friend step_word operator>>(step_word a, step_word n) { return a.bits >> n.bits; }
  SAMEBITS_INLINE friend bool operator==(step_word a, step_word b) { return a.bits == b.bits; }
  SAMEBITS_INLINE friend bool operator!=(step_word a, step_word b) { return a.bits != b.bits; }
  SAMEBITS_INLINE friend bool operator<(step_word a, step_word b) { return a.bits < b.bits; }
  SAMEBITS_INLINE friend bool operator>(step_word a, step_word b) { return a.bits > b.bits; }
  SAMEBITS_INLINE friend bool operator>=(step_word a, step_word b) { return a.bits >= b.bits; }
  SAMEBITS_INLINE friend step_word select(bool m, step_word a, step_word b) {
    return m ? a.bits : b.bits;
  }
  SAMEBITS_INLINE friend step_word leading_zeros(step_word a) {
    return numerics::leading_zeros(a.bits);
  }
  SAMEBITS_INLINE friend step_word discarded(step_word x, step_word shift) {
    return numerics::discarded(x.bits, shift.bits);
  }

  // Steps: operations on binary32 numbers.
  SAMEBITS_INLINE friend step_word fma(step_word a, step_word b, step_word c) {
    return Steps::fma(a.bits, b.bits, c.bits);
  }
  SAMEBITS_INLINE friend step_word fma_down(step_word a, step_word b, step_word c) {
    return Steps::fma_down(a.bits, b.bits, c.bits);
  }
  SAMEBITS_INLINE friend step_word mul(step_word a, step_word b) {
    return Steps::mul(a.bits, b.bits);
  }
  SAMEBITS_INLINE friend step_word add(step_word a, step_word b) {
    return Steps::add(a.bits, b.bits);
  }
  SAMEBITS_INLINE friend step_word add_rz(step_word a, step_word b) {
    return Steps::add_rz(a.bits, b.bits);
  }
  SAMEBITS_INLINE friend step_word div(step_word a, step_word b) {
    return Steps::div(a.bits, b.bits);
  }
  SAMEBITS_INLINE friend step_word sqrt(step_word a) { return Steps::sqrt(a.bits); }
  SAMEBITS_INLINE friend step_word neg(step_word a) { return Steps::neg(a.bits); }
  SAMEBITS_INLINE friend step_word saturate(step_word a) { return Steps::saturate(a.bits); }
  SAMEBITS_INLINE friend step_word nearest_whole(step_word a) {
    return Steps::nearest_whole(a.bits);
  }
  SAMEBITS_INLINE friend step_word whole_toward_zero(step_word a) {
    return Steps::whole_toward_zero(a.bits);
  }
  SAMEBITS_INLINE friend step_word whole_down(step_word a) { return Steps::whole_down(a.bits); }
  SAMEBITS_INLINE friend step_word to_int(step_word a) { return Steps::to_int(a.bits); }
  SAMEBITS_INLINE friend step_word from_int(step_word a) { return Steps::from_int(a.bits); }
  SAMEBITS_INLINE friend bool lt(step_word a, step_word b) { return Steps::lt(a.bits, b.bits); }
  /// `a` must be a number. If b is a NaN: a. Of zeros of both signs: either.
  SAMEBITS_INLINE friend step_word larger(step_word a, step_word b) {
    return Steps::larger(a.bits, b.bits);
  }

  // Function units.
  SAMEBITS_INLINE friend step_word ex2_approx_ftz(step_word a) {
    return Steps::ex2_approx_ftz(a.bits);
  }
  SAMEBITS_INLINE friend step_word ex2_approx(step_word a) { return Steps::ex2_approx(a.bits); }
  SAMEBITS_INLINE friend step_word lg2_approx(step_word a) { return Steps::lg2_approx(a.bits); }
  SAMEBITS_INLINE friend step_word rcp_approx_ftz(step_word a) {
    return Steps::rcp_approx_ftz(a.bits);
  }
  SAMEBITS_INLINE friend step_word rsqrt_approx_ftz(step_word a) {
    return Steps::rsqrt_approx_ftz(a.bits);
  }
  SAMEBITS_INLINE friend step_word rsqrt_approx(step_word a) { return Steps::rsqrt_approx(a.bits); }

  /// The quarter turns of x where `large`, else `small`. Both policies compute them in integers.
  using turns = numerics::cuda_13_0::quarter_turns<step_word>;
  SAMEBITS_INLINE friend turns reduce_large_angle(bool large, step_word x, const turns& small) {
    if (!large) return small;
    const auto exact = Steps::large_angle(x.bits);
    return {exact.angle, exact.quadrant};
  }
};

}  // namespace samebits::cuda

namespace samebits::numerics {

template <class Steps>
struct word_traits<cuda::step_word<Steps>> {
  using mask = bool;
  using element = std::uint32_t;
};

}  // namespace samebits::numerics
