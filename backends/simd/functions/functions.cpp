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

}  // namespace

void avx2_evaluate(const evaluate_call& call, const executor& where) {
  if (__builtin_cpu_supports("fma") == 0) return reference_evaluate(call, where);
  (call.is_exact() ? evaluate_by<avx2_exact_codes> : evaluate_by<avx2_function_codes>)(call, where);
}

void avx512_evaluate(const evaluate_call& call, const executor& where) {
  (call.is_exact() ? evaluate_by<avx512_exact_codes> : evaluate_by<avx512_function_codes>)(call,
                                                                                           where);
}

namespace {

template <row_kernel Kernel>
void with_ieee_control_register(const row_task& task) {
  const ieee_control_register ieee;
  Kernel(task);
}

void with_ieee_control_register(const std::function<void()>& work) {
  const ieee_control_register ieee;
  work();
}

}  // namespace

const sum_kernels& avx2_sums() {
  static constexpr sum_kernels kernels = {avx2_add_codes, avx2_add_products,
                                          with_ieee_control_register};
  return __builtin_cpu_supports("fma") == 0 ? reference_sums() : kernels;
}

const sum_kernels& avx512_sums() {
  static constexpr sum_kernels kernels = {avx512_add_codes, avx512_add_products,
                                          with_ieee_control_register};
  return kernels;
}

namespace {

/// attention_kernels::multiply by a kernel of matrix products, with Hopper's tensor core.
template <const matmul_kernel& Kernel>
void multiply(const attention_product& p) {
  constexpr int alignment_bits = 25, fraction_bits = 23, floor = -133;
  Kernel.wide({p.a, p.b, p.sums, p.rows, attention_step, alignment_bits, fraction_bits, floor});
}

constexpr int a_words = 3 * attention_step;

}  // namespace

void avx2_attention(const attention_call& call, const executor& where) {
  if (__builtin_cpu_supports("fma") == 0) return reference_attention(call, where);
  constexpr attention_kernels kernels = {8,
                                         a_words,
                                         2 * attention_step * 8,
                                         avx2_pack_attention_a,
                                         avx2_pack_attention_b,
                                         multiply<avx2_matmul_kernel>,
                                         avx2_attention_block,
                                         avx2_attention_gradients};
  attention_on_threads(call, where, kernels, with_ieee_control_register);
}

void avx512_attention(const attention_call& call, const executor& where) {
  constexpr attention_kernels kernels = {16,
                                         a_words,
                                         2 * attention_step * 16,
                                         avx512_pack_attention_a,
                                         avx512_pack_attention_b,
                                         multiply<avx512_matmul_kernel>,
                                         avx512_attention_block,
                                         avx512_attention_gradients};
  attention_on_threads(call, where, kernels, with_ieee_control_register);
}

void avx2_row_functions(const row_call& call, const executor& where) {
  if (__builtin_cpu_supports("fma") == 0) return reference_row_functions(call, where);
  rows_on_threads(call, where, with_ieee_control_register<avx2_row>, elements_worth_a_thread);
}

void avx512_row_functions(const row_call& call, const executor& where) {
  rows_on_threads(call, where, with_ieee_control_register<avx512_row>, elements_worth_a_thread);
}

}  // namespace samebits::backends
