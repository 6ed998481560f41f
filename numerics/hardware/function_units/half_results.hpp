// Half results: ex2 and tanh as Hopper's instructions for fp16 and bf16 return them.
//
// The unit computes the binary32 result and truncates it to the format. Compared with an H200 on
// all 65,536 codes of each instruction, and on all 2^32 pairs of its form for pairs (.f16x2,
// .bf16x2), which computes both numbers alike.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/hardware/function_units/ex2.hpp"
#include "numerics/hardware/function_units/tanh_unit.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics::hopper {

/// A binary32 number truncated to fp16. Numbers of 2^16 or more become Inf.
SAMEBITS_INLINE constexpr std::uint32_t truncated_to_fp16(std::uint32_t x) {
  constexpr std::uint32_t too_large = 0x47800000u;  // 2^16
  const std::uint32_t wide =
      binary32::magnitude(x) >= too_large && !binary32::is_nan(x) ? sign_of(x) | binary32::inf : x;
  return encode<std::uint32_t>(spec_of(format_id::fp16), cast_rule{rounding::toward_zero}, wide, 0)
      .code;
}

/// ex2.approx.f16. Operand and result are fp16 codes.
SAMEBITS_HD constexpr std::uint32_t ex2_approx_f16(std::uint32_t x) {
  return truncated_to_fp16(ex2_approx_ftz(decode<std::uint32_t>(spec_of(format_id::fp16), x)));
}
/// tanh.approx.f16. Operand and result are fp16 codes.
SAMEBITS_HD constexpr std::uint32_t tanh_approx_f16(std::uint32_t x) {
  return truncated_to_fp16(tanh_approx(decode<std::uint32_t>(spec_of(format_id::fp16), x)));
}

/// ex2.approx.ftz.bf16. Operand and result are bf16 codes.
SAMEBITS_HD constexpr std::uint32_t ex2_approx_ftz_bf16(std::uint32_t x) {
  return ex2_approx_ftz(x << 16) >> 16;
}
/// tanh.approx.bf16. Operand and result are bf16 codes.
SAMEBITS_HD constexpr std::uint32_t tanh_approx_bf16(std::uint32_t x) {
  return tanh_approx(x << 16) >> 16;
}

}  // namespace samebits::numerics::hopper
