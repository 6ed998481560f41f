// The SIMD backends' entries in the registry. Compiled without instruction set flags.
#include "backends/simd/simd.hpp"

#include "backends/reference/reference.hpp"
#include "backends/self_test/self_test.hpp"
#include "backends/simd/update/update.hpp"
#include "backends/threads/on_threads.hpp"
#include "backends/threads/optimizer.hpp"
#include "backends/threads/quantize_list.hpp"
#include "backends/threads/tensor_list.hpp"

namespace samebits::backends {
namespace {

std::string why_not_avx2() {
  return __builtin_cpu_supports("avx2") != 0 ? "" : "the processor lacks AVX2";
}

std::string why_not_avx512() {
  const bool all =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512cd") != 0;
  return all ? "" : "the processor lacks AVX-512 F/BW/VL/DQ/CD";
}

/// fp64 needs 64-bit words, which the SIMD lanes do not have: the reference loops convert fp64.
template <void (*Convert)(const convert_call&, element_range)>
void convert_or_reference(const convert_call& call, element_range range) {
  const bool wide = call.in.format == format_id::fp64 || call.out.format == format_id::fp64;
  (wide ? reference_convert : Convert)(call, range);
}

/// The probes of a backend's own files, then those of the functions of arrays, which are compiled
/// with fused multiply-adds.
template <void (*Probes)(probe_report&)>
void with_fma_probes(probe_report& report) {
  Probes(report);
  if (__builtin_cpu_supports("avx2") == 0 || __builtin_cpu_supports("fma") == 0) return;
  probe_report more{};
  fma_probes(more);
  for (int i = 0; i < probe_count; ++i) {
    if (report.of[i].bits == 0) report.of[i] = more.of[i];
  }
}

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): decision 0009
constinit self_test_entry avx2_self_test = {with_fma_probes<avx2_probes>};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): decision 0009
constinit self_test_entry avx512_self_test = {with_fma_probes<avx512_probes>};

}  // namespace

const backend avx2 = {
    .name = "avx2",
    .description = "x86-64 with AVX2, 8 lanes",
    .space = memory_space::host,
    .why_unsupported = why_not_avx2,
    .self_test = &avx2_self_test,
    .convert = {.run = convert_on_threads<convert_or_reference<avx2_convert>>},
    .compute = {.run = compute_on_threads<avx2_compute_or_reference>},
    .evaluate = {.run = avx2_evaluate},
    .fused = {.run = avx2_fused},
    .row_functions = {.run = avx2_row_functions},
    .attention = {.run = avx2_attention},
    .reduce = {.run = host_reduce},
    .hash = {.run = host_hash},
    .matmul = {.run = avx2_matmul},
    .quantize = {.run = avx2_quantize},
    .dequantize = {.run = avx2_dequantize},
    .quantize_list = {.run = run_with<quantize_each, avx2_quantize>},
    .quantize_blocks = {.run = host_quantize_blocks},
    .dequantize_blocks = {.run = host_dequantize_blocks},
    .inspect = {.run = run_with<inspect_on_threads, avx2_list_kernels>},
    .scale = {.run = run_with<scale_on_threads, avx2_list_kernels>},
    .axpby = {.run = run_with<axpby_on_threads, avx2_list_kernels>},
    .accumulate = {.run = run_with<accumulate_on_threads, avx2_list_kernels>},
    .cast = {.run = run_with<cast_on_threads, convert_or_reference<avx2_convert>>},
    .step = {.run = run_with<step_on_threads, avx2_update_kernels>},
    .store = {.run = run_with<store_on_threads, avx2_update_kernels>},
    .sums = avx2_sums,
};

const backend avx512 = {
    .name = "avx512",
    .description = "x86-64 with AVX-512, 16 lanes",
    .space = memory_space::host,
    .why_unsupported = why_not_avx512,
    .self_test = &avx512_self_test,
    .convert = {.run = convert_on_threads<convert_or_reference<avx512_convert>>},
    .compute = {.run = compute_on_threads<avx512_compute_or_reference>},
    .evaluate = {.run = avx512_evaluate},
    .fused = {.run = avx512_fused},
    .row_functions = {.run = avx512_row_functions},
    .attention = {.run = avx512_attention},
    .reduce = {.run = host_reduce},
    .hash = {.run = host_hash},
    .matmul = {.run = avx512_matmul},
    .quantize = {.run = avx512_quantize},
    .dequantize = {.run = avx512_dequantize},
    .quantize_list = {.run = run_with<quantize_each, avx512_quantize>},
    .quantize_blocks = {.run = host_quantize_blocks},
    .dequantize_blocks = {.run = host_dequantize_blocks},
    .inspect = {.run = run_with<inspect_on_threads, avx512_list_kernels>},
    .scale = {.run = run_with<scale_on_threads, avx512_list_kernels>},
    .axpby = {.run = run_with<axpby_on_threads, avx512_list_kernels>},
    .accumulate = {.run = run_with<accumulate_on_threads, avx512_list_kernels>},
    .cast = {.run = run_with<cast_on_threads, convert_or_reference<avx512_convert>>},
    .step = {.run = run_with<step_on_threads, avx512_update_kernels>},
    .store = {.run = run_with<store_on_threads, avx512_update_kernels>},
    .sums = avx512_sums,
};

}  // namespace samebits::backends
