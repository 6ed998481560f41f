// The reference backend's entry in the registry.
#include "backends/reference/reference.hpp"

#include "backends/threads/on_threads.hpp"
#include "backends/threads/optimizer.hpp"
#include "backends/threads/quantize_list.hpp"
#include "backends/threads/tensor_list.hpp"

namespace samebits::backends {

const backend reference = {
    .name = "reference",
    .description = "portable C++, the definition itself",
    .space = memory_space::host,
    .why_unsupported = [] { return std::string(); },
    .self_test = &reference_self_test,
    .convert = {.run = convert_on_threads<reference_convert>},
    .compute = {.run = compute_on_threads<reference_compute>},
    .evaluate = {.run = reference_evaluate},
    .fused = {.run = reference_fused},
    .row_functions = {.run = reference_row_functions},
    .attention = {.run = reference_attention},
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
    .sums = reference_sums,
};

}  // namespace samebits::backends
