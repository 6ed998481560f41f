// Definition steps: the steps and function units of step_word in integers, for cuda-emulated.
//
// No step is inlined: a function of 30 steps would else be thousands of instructions.
#pragma once

#include <cstdint>

#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/cuda_functions/two_over_pi.hpp"
#include "numerics/hardware/function_units/ex2.hpp"
#include "numerics/hardware/function_units/lg2.hpp"
#include "numerics/hardware/function_units/rcp.hpp"
#include "numerics/hardware/function_units/rsqrt.hpp"
#include "samebits/core/config.hpp"

namespace samebits::cuda {

/// Operands and results are binary32 bits or integers, as in steps.hpp.
struct definition_steps {
  using word = std::uint32_t;

  SAMEBITS_HD __noinline__ static word fma(word a, word b, word c) {
    return numerics::ptx::fma(a, b, c);
  }
  SAMEBITS_HD __noinline__ static word fma_down(word a, word b, word c) {
    return numerics::ptx::fma_down(a, b, c);
  }
  SAMEBITS_HD __noinline__ static word mul(word a, word b) { return numerics::ptx::mul(a, b); }
  SAMEBITS_HD __noinline__ static word add(word a, word b) { return numerics::ptx::add(a, b); }
  SAMEBITS_HD __noinline__ static word add_rz(word a, word b) {
    return numerics::ptx::add_rz(a, b);
  }
  SAMEBITS_HD __noinline__ static word div(word a, word b) { return numerics::ptx::div(a, b); }
  SAMEBITS_HD __noinline__ static word sqrt(word a) { return numerics::ptx::sqrt(a); }
  SAMEBITS_INLINE static word neg(word a) { return numerics::ptx::neg(a); }
  SAMEBITS_INLINE static word saturate(word a) { return numerics::ptx::saturate(a); }
  SAMEBITS_HD __noinline__ static word nearest_whole(word a) {
    return numerics::ptx::nearest_whole(a);
  }
  SAMEBITS_HD __noinline__ static word whole_toward_zero(word a) {
    return numerics::ptx::whole_toward_zero(a);
  }
  SAMEBITS_HD __noinline__ static word whole_down(word a) { return numerics::ptx::whole_down(a); }
  SAMEBITS_INLINE static word to_int(word a) { return numerics::ptx::to_int(a); }
  SAMEBITS_HD __noinline__ static word from_int(word a) { return numerics::ptx::from_int(a); }
  SAMEBITS_INLINE static bool lt(word a, word b) { return numerics::ptx::lt(a, b); }
  SAMEBITS_INLINE static word larger(word a, word b) { return lt(a, b) ? b : a; }

  SAMEBITS_HD __noinline__ static word ex2_approx_ftz(word a) {
    return numerics::hopper::ex2_approx_ftz(a);
  }
  SAMEBITS_HD __noinline__ static word ex2_approx(word a) {
    return numerics::hopper::ex2_approx(a);
  }
  SAMEBITS_HD __noinline__ static word lg2_approx(word a) {
    return numerics::hopper::lg2_approx(a);
  }
  SAMEBITS_HD __noinline__ static word rcp_approx_ftz(word a) {
    return numerics::hopper::rcp_approx_ftz(a);
  }
  SAMEBITS_HD __noinline__ static word rsqrt_approx_ftz(word a) {
    return numerics::hopper::rsqrt_approx_ftz(a);
  }
  SAMEBITS_HD __noinline__ static word rsqrt_approx(word a) {
    return numerics::hopper::rsqrt_approx(a);
  }
  SAMEBITS_HD __noinline__ static numerics::cuda_13_0::quarter_turns<word> large_angle(word a) {
    return numerics::cuda_13_0::reduce_large_angle(a);
  }
};

}  // namespace samebits::cuda
