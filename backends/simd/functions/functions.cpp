// Functions of arrays and of rows on the SIMD backends. On processors with AVX2 but without fused
// multiply-adds, the reference backend computes them. Compiled without instruction set flags.
#include "backends/simd/functions/functions.hpp"

#include <cstdint>
#include <functional>

#include "backends/dispatch/calls/row_functions.hpp"
#include "backends/reference/functions/function_range.hpp"
#include "backends/reference/functions/result_table.hpp"
#include "backends/reference/reference.hpp"
#include "backends/simd/lanes/control_register.hpp"
#include "backends/simd/matmul/matmul_kernel.hpp"
#include "backends/simd/simd.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/hardware/cuda_functions/two_over_pi.hpp"
#include "numerics/hardware/function_units/lg2.hpp"

namespace samebits::backends {

void reduce_large_angles(const std::uint32_t* large, const std::uint32_t* x, std::uint32_t* angle,
                         std::uint32_t* quadrant, int count) {
  for (int i = 0; i < count; ++i) {
    if (large[i] == 0) continue;
    const auto turns = numerics::cuda_13_0::reduce_large_angle(x[i]);
    angle[i] = turns.angle;
    quadrant[i] = turns.quadrant;
  }
}

void scalar_lg2_approx(std::uint32_t* x, int count) {
  for (int i = 0; i < count; ++i) x[i] = numerics::hopper::lg2_approx(x[i]);
}

void evaluate_by_lanes(const lane_kernels& by, const evaluate_call& call, const executor& where) {
  if (!has_fused_multiply_adds()) return reference_evaluate(call, where);
  evaluate_on_threads(call, where, call.is_exact() ? by.exact : by.functions, in_ieee_state);
}

void fused_by_lanes(const lane_kernels& by, const fused_call& call, const executor& where) {
  if (!has_fused_multiply_adds()) return reference_fused(call, where);
  fused_on_threads(call, where, by.fused, in_ieee_state);
}

void rows_by_lanes(const lane_kernels& by, const row_call& call, const executor& where) {
  if (!has_fused_multiply_adds()) return reference_row_functions(call, where);
  rows_on_threads(call, where, by.rows.row, elements_worth_a_thread, in_ieee_state);
}

void attention_by_lanes(const lane_kernels& by, const attention_call& call, const executor& where) {
  if (!has_fused_multiply_adds()) return reference_attention(call, where);
  attention_on_threads(call, where, by.rows.attention, in_ieee_state);
}

}  // namespace samebits::backends
