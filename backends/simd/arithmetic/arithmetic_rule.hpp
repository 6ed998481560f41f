// Arithmetic rule: the calls that the processor's instructions compute instead of the integer
// definition. docs/decisions/0021-arithmetic-by-the-processor.md proves that the bits are equal.
#pragma once

#include <cstdint>

#include "backends/dispatch/calls/array_arithmetic.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/operation.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::simd {

/// How an instruction set computes a * b + c.
enum class fused_steps : std::uint8_t {
  none,      ///< no fused instruction: only if the product is exact and one addition suffices
  directed,  ///< fused with an explicit rounding direction: rounds to odd in two operations
};

/// Whether the processor computes this operation on one format, rounded to nearest even.
constexpr bool is_computed(operation op, format_id format, fused_steps steps) {
  if (op == operation::fma) return steps == fused_steps::directed || format == format_id::e4m3;
  return op == operation::add || op == operation::sub || op == operation::mul ||
         op == operation::div || op == operation::sqrt;
}

/// Whether the kernels support a call; the reference definition computes all others.
inline bool supports(const backends::compute_call& call, fused_steps steps) {
  return backends::is_proved_equal(
      call, [steps](operation op, format_id format) { return is_computed(op, format, steps); });
}

/// Whether the AVX2 kernels compute a call and leave its flags, the union over all elements, in MXCSR:
/// one instruction computes and rounds each result. Under `saturate`, an Inf operand also overflows.
inline bool supports_flags(backends::compute_call call) {
  if (call.report == backends::flag_report::none || call.each.data != nullptr) return false;
  if (call.out.format != format_id::fp32 || call.rule.overflow != overflow::ieee) return false;
  call.report = backends::flag_report::none;
  return supports(call, fused_steps::none);
}

}  // namespace samebits::simd
