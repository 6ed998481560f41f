// The instructions of the function unit probe, one PTX instruction each.
#pragma once

#include <cstdint>
#include <type_traits>

#include "function_unit_probe/device.hpp"

namespace samebits::cuda {

// Registers of assembly by the bits that they hold.
#define SAMEBITS_REGISTER_16 "h"
#define SAMEBITS_REGISTER_32 "r"

template <int Bits>
using register_word = std::conditional_t<Bits == 16, std::uint16_t, std::uint32_t>;

/// The result of an instruction at x, both in the instruction's format. In kernels compiled for an
/// older compute capability than the instruction's, the function returns 0 and is never called:
/// capability() in device.cu is at most that of the kernels.
template <function_units::instruction What>
__device__ std::uint32_t result_of(std::uint32_t x) {
#ifdef __CUDA_ARCH__
#define SAMEBITS_RESULT(ID, PTX, BITS, CAPABILITY, MODEL)                                      \
  if constexpr (What == function_units::instruction::ID && 10 * CAPABILITY <= __CUDA_ARCH__) { \
    register_word<BITS> y;                                                                     \
    asm(PTX " %0, %1;"                                                                         \
        : "=" SAMEBITS_REGISTER_##BITS(y)                                                      \
        : SAMEBITS_REGISTER_##BITS(static_cast<register_word<BITS>>(x)));                      \
    return y;                                                                                  \
  }
  SAMEBITS_FUNCTION_UNIT_INSTRUCTIONS(SAMEBITS_RESULT)
#undef SAMEBITS_RESULT
#endif
  return 0;
}
#undef SAMEBITS_REGISTER_16
#undef SAMEBITS_REGISTER_32

}  // namespace samebits::cuda
