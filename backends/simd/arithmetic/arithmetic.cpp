// Array arithmetic on the SIMD backends: kernels compute the calls they support, the reference
// backend all others. Compiled without instruction set flags.
#include "backends/dispatch/calls/array_arithmetic.hpp"

#include "backends/reference/reference.hpp"
#include "backends/simd/arithmetic/arithmetic_rule.hpp"
#include "backends/simd/lanes/control_register.hpp"
#include "backends/simd/simd.hpp"

namespace samebits::backends {

/// Also leaves the flags of calls that supports_flags() accepts in the control register.
void avx2_compute(const compute_call& call, element_range range);

flags compute_by_lanes(const lane_kernels& by, const compute_call& call, element_range range) {
  if (simd::supports_flags(call)) {
    // On both backends: AVX-512 instructions that name their rounding raise no flags.
    const ieee_control_register ieee;
    avx2_compute(call, range);
    return ieee.raised();
  }
  if (!simd::supports(call, by.steps)) return reference_compute(call, range);
  const ieee_control_register ieee;
  by.compute(call, range);
  return flags::none;
}

}  // namespace samebits::backends
