// The instructions of the function unit probe, one PTX instruction each.
#pragma once

#include <cstdint>

#include "function_unit_probe/device.hpp"

namespace samebits::cuda {

// The operand is `x`: a float f, two 16-bit numbers, or one in the low half h.
#define SAMEBITS_F32(ptx)                                    \
  {                                                          \
    float y;                                                 \
    asm(ptx " %0, %1;" : "=f"(y) : "f"(__uint_as_float(x))); \
    return __float_as_uint(y);                               \
  }
#define SAMEBITS_B32(ptx)                   \
  {                                         \
    std::uint32_t y;                        \
    asm(ptx " %0, %1;" : "=r"(y) : "r"(x)); \
    return y;                               \
  }
#define SAMEBITS_B16(ptx)                                               \
  {                                                                     \
    std::uint16_t y;                                                    \
    asm(ptx " %0, %1;" : "=h"(y) : "h"(static_cast<std::uint16_t>(x))); \
    return y;                                                           \
  }

/// The result of an instruction at x, both in the instruction's format. In kernels compiled for an
/// older compute capability than the instruction's, the function returns 0 and is never called:
/// capability() in device.cu is at most that of the kernels.
template <function_units::instruction What>
__device__ std::uint32_t result_of(std::uint32_t x) {
#ifdef __CUDA_ARCH__
#define SAMEBITS_RESULT(ID, PTX, KIND, CAPABILITY, MODEL)                                    \
  if constexpr (What == function_units::instruction::ID && 10 * CAPABILITY <= __CUDA_ARCH__) \
  SAMEBITS_##KIND(PTX)
  SAMEBITS_FUNCTION_UNIT_INSTRUCTIONS(SAMEBITS_RESULT)
#undef SAMEBITS_RESULT
#endif
  return 0;
}
#undef SAMEBITS_F32
#undef SAMEBITS_B32
#undef SAMEBITS_B16

}  // namespace samebits::cuda
