// Rounded results: rounds an approximation to nearest even where its error cannot change the
// result, and says where it could.
#pragma once

#include <cstdint>

namespace samebits::cuda {

/// A result's code. `sure` is false if numbers within 2^-39 of the approximation, relative, may
/// round to another code.
struct rounded_result {
  std::uint32_t code;
  bool sure;
};

/// Into fp32. In [2^-126, Inf] ties have the lowest 29 bits 2^28: those within 2^14 of them are not
/// sure. Results below 2^-151 are 0; those between are not sure.
__device__ __forceinline__ rounded_result rounded_to_fp32(double y) {
  constexpr unsigned margin = 1u << 14;
  constexpr unsigned tie = 1u << 28;
  const auto low = static_cast<unsigned>(__double2loint(y));
  const auto high = static_cast<unsigned>(__double2hiint(y)) & 0x7FFFFFFFu;
  const bool apart = (low << 3) - ((tie - margin) << 3) >= (2 * margin) << 3;
  const bool representable = high - ((1023u - 151u) << 20) >= (151u - 126u) << 20;
  return {__float_as_uint(__double2float_rn(y)), apart && representable};
}

/// Into bf16, by way of fp32. Rounding to fp32 moves no number across a tie of bf16, so only
/// results that are a tie in fp32 are not sure.
__device__ __forceinline__ rounded_result rounded_to_bf16(double y) {
  const float near = __double2float_rn(y);
  std::uint32_t code;  // of two numbers: their conversion is faster than that of one
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(code) : "f"(0.0f), "f"(near));
  return {code, (__float_as_uint(near) & 0xFFFFu) != 0x8000u};
}

/// Into fp16, by way of fp32 as above. Ties of subnormal fp16 numbers are not looked for: results
/// from 2^-26 to 2^-14 are not sure.
__device__ __forceinline__ rounded_result rounded_to_fp16(double y) {
  const float near = __double2float_rn(y);
  const unsigned bits = __float_as_uint(near);
  const bool apart = (bits & 0x1FFFu) != 0x1000u;
  const bool representable = (bits & 0x7FFFFFFFu) - ((127u - 26u) << 23) >= (26u - 14u) << 23;
  std::uint32_t code;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(code) : "f"(0.0f), "f"(near));
  return {code, apart && representable};
}

}  // namespace samebits::cuda
