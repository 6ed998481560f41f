// Functions of arrays and of rows on the SIMD backends. On processors with AVX2 but without fused
// multiply-adds, the reference backend computes them. Compiled without instruction set flags.
#include "backends/simd/functions/functions.hpp"

#include <cstdint>

#include "backends/dispatch/calls/evaluate.hpp"
#include "backends/dispatch/calls/exact_function.hpp"
#include "backends/dispatch/calls/row_functions.hpp"
#include "backends/reference/cells.hpp"
#include "backends/reference/reference.hpp"
#include "backends/simd/functions/exact/result_table.hpp"
#include "backends/simd/lanes/control_register.hpp"
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

void avx2_evaluate(const evaluate_call& call, element_range range) {
  if (__builtin_cpu_supports("fma") == 0) return reference_evaluate(call, range);
  const ieee_control_register ieee;
  evaluate_range(call, range, avx2_evaluate_codes);
}

void avx512_evaluate(const evaluate_call& call, element_range range) {
  const ieee_control_register ieee;
  evaluate_range(call, range, avx512_evaluate_codes);
}

namespace {

template <row_kernel Kernel>
void with_ieee_control_register(const row_task& task) {
  const ieee_control_register ieee;
  Kernel(task);
}

}  // namespace

void avx2_row_functions(const row_call& call, const executor& where) {
  if (__builtin_cpu_supports("fma") == 0) return reference_row_functions(call, where);
  rows_on_threads(call, where, with_ieee_control_register<avx2_row>, elements_worth_a_thread);
}

void avx512_row_functions(const row_call& call, const executor& where) {
  rows_on_threads(call, where, with_ieee_control_register<avx512_row>, elements_worth_a_thread);
}

namespace {

void exact_on_lanes(const exact_call& call, element_range range, exact_codes codes) {
  random_sequence sequence(call.random);
  auto random = [&](std::uint64_t index) { return sequence.dither<std::uint64_t>(index); };
  const ieee_control_register ieee;
  if (is_for_table(call, range) && exact_by_table(call, range, codes)) return;
  exact_range(call, range, codes, random);
}

}  // namespace

void avx2_exact(const exact_call& call, element_range range) {
  if (__builtin_cpu_supports("fma") == 0) return reference_exact(call, range);
  exact_on_lanes(call, range, avx2_exact_codes);
}

void avx512_exact(const exact_call& call, element_range range) {
  exact_on_lanes(call, range, avx512_exact_codes);
}

}  // namespace samebits::backends
