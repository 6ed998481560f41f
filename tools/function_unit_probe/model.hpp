// Model: what this library says that each instruction of the probe returns.
#pragma once

#include "function_unit_probe/device.hpp"
#include "numerics/hardware/function_units/ex2.hpp"
#include "numerics/hardware/function_units/half_results.hpp"
#include "numerics/hardware/function_units/lg2.hpp"
#include "numerics/hardware/function_units/rcp.hpp"
#include "numerics/hardware/function_units/rsqrt.hpp"
#include "numerics/hardware/function_units/sin_unit.hpp"
#include "numerics/hardware/function_units/sqrt.hpp"
#include "numerics/hardware/function_units/tanh_unit.hpp"
#include "samebits/core/config.hpp"

namespace samebits::function_units {

/// ex2 or tanh of both 16-bit numbers of a word.
template <std::uint32_t (*Function)(std::uint32_t)>
SAMEBITS_HD std::uint32_t of_both_halves(std::uint32_t x) {
  return Function(x & 0xFFFFu) | (Function(x >> 16) << 16);
}

/// The result of an instruction at x, both in the instruction's format.
template <instruction What>
SAMEBITS_HD std::uint32_t model_of(std::uint32_t x) {
  using enum instruction;
  namespace hopper = numerics::hopper;
  if constexpr (What == ex2_ftz) return hopper::ex2_approx_ftz(x);
  if constexpr (What == ex2) return hopper::ex2_approx(x);
  if constexpr (What == lg2_ftz) return hopper::lg2_approx_ftz(x);
  if constexpr (What == lg2) return hopper::lg2_approx(x);
  if constexpr (What == rcp_ftz) return hopper::rcp_approx_ftz(x);
  if constexpr (What == rcp) return hopper::rcp_approx(x);
  if constexpr (What == rsqrt_ftz) return hopper::rsqrt_approx_ftz(x);
  if constexpr (What == rsqrt) return hopper::rsqrt_approx(x);
  if constexpr (What == sqrt_ftz) return hopper::sqrt_approx_ftz(x);
  if constexpr (What == sqrt) return hopper::sqrt_approx(x);
  if constexpr (What == sin_ftz) return hopper::sin_approx_ftz(x);
  if constexpr (What == cos_ftz) return hopper::cos_approx_ftz(x);
  if constexpr (What == tanh) return hopper::tanh_approx(x);
  if constexpr (What == ex2_f16) return hopper::ex2_approx_f16(x & 0xFFFFu);
  if constexpr (What == ex2_f16x2) return of_both_halves<hopper::ex2_approx_f16>(x);
  if constexpr (What == ex2_ftz_bf16) return hopper::ex2_approx_ftz_bf16(x & 0xFFFFu);
  if constexpr (What == ex2_ftz_bf16x2) return of_both_halves<hopper::ex2_approx_ftz_bf16>(x);
  if constexpr (What == tanh_f16) return hopper::tanh_approx_f16(x & 0xFFFFu);
  if constexpr (What == tanh_f16x2) return of_both_halves<hopper::tanh_approx_f16>(x);
  if constexpr (What == tanh_bf16) return hopper::tanh_approx_bf16(x & 0xFFFFu);
  if constexpr (What == tanh_bf16x2) return of_both_halves<hopper::tanh_approx_bf16>(x);
}

}  // namespace samebits::function_units
