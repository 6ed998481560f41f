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
  namespace hopper = numerics::hopper;
#define SAMEBITS_MODEL(ID, PTX, BITS, CAPABILITY, MODEL) \
  if constexpr (What == instruction::ID) return MODEL(BITS == 16 ? x & 0xFFFFu : x);
  SAMEBITS_FUNCTION_UNIT_INSTRUCTIONS(SAMEBITS_MODEL)
#undef SAMEBITS_MODEL
}

}  // namespace samebits::function_units
