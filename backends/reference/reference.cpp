// The reference backend's entry in the registry.
#include "backends/reference/reference.hpp"

#include "backends/reference/functions/reference_kernels.hpp"
#include "backends/threads/on_threads.hpp"
#include "backends/threads/optimizer.hpp"
#include "backends/threads/quantize_list.hpp"
#include "backends/threads/tensor_list.hpp"

namespace samebits::backends {

const function_kernels& reference_functions() {
  static constinit const function_kernels kernels = {reference_function_codes,
                                                     reference_exact_codes,
                                                     reference_fused_codes,
                                                     reference_row,
                                                     1 << 10,
                                                     reference_sums,
                                                     reference_attention,
                                                     in_any_state};
  return kernels;
}

const backend reference = {
    .name = "reference",
    .description = "portable C++, the definition itself",
    .space = memory_space::host,
    .why_unsupported = [] { return std::string(); },
    .self_test = &reference_self_test,
    .convert = {.run = convert_on_threads<reference_convert>},
    .compute = {.run = compute_on_threads<reference_compute>},
    .evaluate = {.run = run_with<evaluate_on_threads, reference_functions>},
    .fused = {.run = run_with<fused_on_threads, reference_functions>},
    .row_functions = {.run = run_with<rows_on_threads, reference_functions>},
    .attention = {.run = run_with<attention_on_threads, reference_functions>},
    .reduce = {.run = host_reduce},
    .hash = {.run = host_hash},
    .matmul = {.run = reference_matmul},
    .quantize = {.run = reference_quantize},
    .dequantize = {.run = reference_dequantize},
    .quantize_list = {.run = run_with<quantize_each, reference_quantize>},
    .quantize_blocks = {.run = host_quantize_blocks},
    .dequantize_blocks = {.run = host_dequantize_blocks},
    .inspect = {.run = run_with<inspect_on_threads, reference_list_kernels>},
    .scale = {.run = run_with<scale_on_threads, reference_list_kernels>},
    .axpby = {.run = run_with<axpby_on_threads, reference_list_kernels>},
    .accumulate = {.run = run_with<accumulate_on_threads, reference_list_kernels>},
    .cast = {.run = run_with<cast_on_threads, reference_convert>},
    .step = {.run = run_with<step_on_threads, reference_update_kernels>},
    .store = {.run = run_with<store_on_threads, reference_update_kernels>},
    .functions = reference_functions,
};

}  // namespace samebits::backends
