// Array arithmetic on the SIMD backends: kernels compute the calls they support, the reference
// backend all others. Compiled without instruction set flags.
#include "backends/dispatch/calls/array_arithmetic.hpp"

#include "backends/reference/reference.hpp"
#include "backends/simd/arithmetic/arithmetic_rule.hpp"
#include "backends/simd/lanes/control_register.hpp"
#include "backends/simd/simd.hpp"

namespace samebits::backends {
namespace {

template <void (*Kernels)(const compute_call&, element_range), simd::fused_steps Steps>
flags compute_or_reference(const compute_call& call, element_range range) {
  if (simd::supports_flags(call)) {
    // On both backends: AVX-512 instructions that name their rounding raise no flags.
    const ieee_control_register ieee;
    avx2_compute(call, range);
    return ieee.raised();
  }
  if (!simd::supports(call, Steps)) return reference_compute(call, range);
  const ieee_control_register ieee;
  Kernels(call, range);
  return flags::none;
}

}  // namespace

flags avx2_compute_or_reference(const compute_call& call, element_range range) {
  return compute_or_reference<avx2_compute, simd::fused_steps::none>(call, range);
}
flags avx512_compute_or_reference(const compute_call& call, element_range range) {
  return compute_or_reference<avx512_compute, simd::fused_steps::directed>(call, range);
}

}  // namespace samebits::backends
