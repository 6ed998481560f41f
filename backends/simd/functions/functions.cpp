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

void in_ieee_state(const std::function<void()>& work) {
  const ieee_control_register ieee;
  work();
}

namespace {

template <function_codes Codes>
void with_ieee_control_register(const evaluate_call& call, function_chunk& chunk, int count) {
  const ieee_control_register ieee;
  Codes(call, chunk, count);
}

/// Applies a call on threads by a kernel.
template <function_codes Codes>
void evaluate_by(const evaluate_call& call, const executor& where) {
  if (evaluate_by_table(call, where, with_ieee_control_register<Codes>)) return;
  for_each_part(call.out.rows * call.out.cols, where.threads, [&](element_range range) {
    const ieee_control_register ieee;
    function_range(call, range, Codes);
  });
}

template <fused_codes Codes>
void fused_by(const fused_call& call, const executor& where) {
  fused_on_threads(call, where, [](const fused_call& c, fused_chunk& chunk, int count) {
    const ieee_control_register ieee;
    Codes(c, chunk, count);
  });
}

}  // namespace

void avx2_fused(const fused_call& call, const executor& where) {
  if (__builtin_cpu_supports("fma") == 0) return reference_fused(call, where);
  fused_by<avx2_fused_codes>(call, where);
}
void avx512_fused(const fused_call& call, const executor& where) {
  fused_by<avx512_fused_codes>(call, where);
}

void avx2_evaluate(const evaluate_call& call, const executor& where) {
  if (__builtin_cpu_supports("fma") == 0) return reference_evaluate(call, where);
  (call.is_exact() ? evaluate_by<avx2_exact_codes> : evaluate_by<avx2_function_codes>)(call, where);
}

void avx512_evaluate(const evaluate_call& call, const executor& where) {
  (call.is_exact() ? evaluate_by<avx512_exact_codes> : evaluate_by<avx512_function_codes>)(call,
                                                                                           where);
}

namespace {

template <const row_kernels& Kernels>
void compute_row(const row_task& task) {
  const ieee_control_register ieee;
  Kernels.row(task);
}

template <const row_kernels& Kernels>
const sum_kernels& sums_by() {
  static const sum_kernels kernels = {Kernels.sums.add, Kernels.sums.add_products, in_ieee_state};
  return kernels;
}

/// attention_kernels::multiply by a kernel of matrix products, with Hopper's tensor core.
template <const matmul_kernel& Kernel>
void multiply(const attention_product& p) {
  constexpr int alignment_bits = 25, fraction_bits = 23, floor = -133;
  Kernel.wide({p.a, p.b, p.sums, p.rows, attention_step, alignment_bits, fraction_bits, floor});
}

template <const row_kernels& Kernels, const matmul_kernel& Products>
void attention_by(const attention_call& call, const executor& where) {
  attention_kernels kernels = Kernels.attention;
  kernels.multiply = multiply<Products>;
  attention_on_threads(call, where, kernels, in_ieee_state);
}

}  // namespace

const sum_kernels& avx2_sums() {
  return __builtin_cpu_supports("fma") == 0 ? reference_sums() : sums_by<avx2_rows>();
}
const sum_kernels& avx512_sums() { return sums_by<avx512_rows>(); }

void avx2_attention(const attention_call& call, const executor& where) {
  if (__builtin_cpu_supports("fma") == 0) return reference_attention(call, where);
  attention_by<avx2_rows, avx2_matmul_kernel>(call, where);
}
void avx512_attention(const attention_call& call, const executor& where) {
  attention_by<avx512_rows, avx512_matmul_kernel>(call, where);
}

void avx2_row_functions(const row_call& call, const executor& where) {
  if (__builtin_cpu_supports("fma") == 0) return reference_row_functions(call, where);
  rows_on_threads(call, where, compute_row<avx2_rows>, elements_worth_a_thread);
}
void avx512_row_functions(const row_call& call, const executor& where) {
  rows_on_threads(call, where, compute_row<avx512_rows>, elements_worth_a_thread);
}

}  // namespace samebits::backends
