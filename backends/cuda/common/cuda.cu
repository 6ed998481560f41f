// The backend tables of cuda-emulated and cuda-native, and the reasons why a machine cannot run
// them.
#include <string>

#include "backends/cuda/arithmetic/arithmetic.hpp"
#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/runtime.hpp"
#include "backends/cuda/functions/functions.hpp"
#include "backends/cuda/matmul/plan.hpp"
#include "backends/cuda/quantize/general/general.hpp"
#include "backends/cuda/quantize/quantize.hpp"
#include "backends/cuda/reductions/reductions.hpp"
#include "backends/cuda/tensor_list/list.hpp"
#include "backends/cuda/training/gradient_reduction.hpp"
#include "backends/cuda/training/resident_scaler.hpp"
#include "backends/cuda/update/update.hpp"
#include "backends/self_test/self_test.hpp"

namespace samebits::cuda {
namespace {

/// Why cuda-emulated cannot run on the current device; empty if it can.
std::string why_not_emulated() { return code_of_current_device().reason; }

std::string dotted(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

/// Why cuda-native cannot run on the current device; empty if it can.
std::string why_not_native() {
  const loaded_code code = code_of_current_device();
  if (!code.reason.empty() || code.compiled_for >= 89) return code.reason;
  if (code.capability < 89) return "FP8 instructions need compute capability 8.9";
  return "its kernels for this GPU were compiled for compute capability " +
         dotted(code.compiled_for) + ", FP8 instructions need 8.9: build with " +
         "CMAKE_CUDA_ARCHITECTURES=" + std::to_string(code.capability);
}

constinit backends::self_test_entry emulated_self_test = {probes_on_device,
                                                          emulated_codes_on_device};
constinit backends::self_test_entry native_self_test = {probes_on_device, native_codes_on_device};

/// Enqueues a call on the executor's stream.
template <auto Enqueue, class Call>
void on_stream(const Call& call, const executor& where) {
  Enqueue(call, where.stream);
}

/// Requires the self-test of Self, then enqueues a call.
template <const backends::backend& Self, auto Enqueue, class Call>
void tested(const Call& call, const executor& where) {
  backends::require_tested(Self, where.stream);
  Enqueue(call, where.stream);
}

/// Requires the self-test of Self, then enqueues a call by the arithmetic of Self.
template <const backends::backend& Self, auto Enqueue, class Call>
void tested_list(const Call& call, const executor& where) {
  backends::require_tested(Self, where.stream);
  const bool is_native = &Self == &native;
  Enqueue(call, is_native ? arithmetic::hardware : arithmetic::by_definition, where.stream);
}

}  // namespace

const backends::backend emulated = {
    .name = "cuda-emulated",
    .description = "CUDA, the definition in a kernel",
    .space = memory_space::device,
    .why_unsupported = why_not_emulated,
    .self_test = &emulated_self_test,
    .convert = {.run = on_stream<launch_emulated>},
    .compute = {.run = tested<emulated, enqueue_compute_emulated>},
    .evaluate = {.run = tested<emulated, enqueue_evaluate_emulated>},
    .fused = {.run = tested<emulated, enqueue_fused_emulated>},
    .row_functions = {.run = tested<emulated, enqueue_rows_emulated>},
    .reduce = {.workspace = reduction_bytes, .run = tested_list<emulated, enqueue_reduction>},
    .hash = {.run = on_stream<enqueue_hash>},
    .quantize = {.workspace = general_workspace, .run = tested_list<emulated, enqueue_quantize>},
    .dequantize = {.run = tested_list<emulated, enqueue_dequantize>},
    .quantize_list = {.supports = backends::has_one_level,
                      .run = tested_list<emulated, enqueue_list>},
    .quantize_blocks = {.run = tested_list<emulated, enqueue_quantize_blocks>},
    .dequantize_blocks = {.run = tested_list<emulated, enqueue_dequantize_blocks>},
    .inspect = {.run = tested_list<emulated, run_inspect>},
    .scale = {.run = tested_list<emulated, run_scale>},
    .axpby = {.run = tested_list<emulated, enqueue_axpby>},
    .accumulate = {.run = tested_list<emulated, enqueue_accumulate>},
    .cast = {.run = tested_list<emulated, enqueue_cast>},
    .step = {.run = tested_list<emulated, enqueue_step>},
    .store = {.run = tested_list<emulated, enqueue_store>},
    .cross_entropy = {.workspace = cross_entropy_bytes,
                      .run = tested<emulated, enqueue_cross_entropy_emulated>},
    .norm_parameters = {.supports = has_norm_parameters,
                        .run = tested<emulated, enqueue_norm_parameters_emulated>},
    .fused_quantize = {.run = tested<emulated, enqueue_fused_quantize_emulated>},
    .embedding_gradient = {.supports = has_embedding_gradient,
                           .run = tested<emulated, enqueue_embedding_gradient_emulated>},
    .memory = &memory,
    .runtime = &runtime,
    .ranks = &emulated_ranks,
    .prepare_list = prepare_list,
    .scaler = &emulated_scaler,
};

const backends::backend native = {
    .name = "cuda-native",
    .description = "CUDA, hardware conversions where proved equal",
    .space = memory_space::device,
    .why_unsupported = why_not_native,
    .self_test = &native_self_test,
    .convert = {.supports = native_supports, .run = on_stream<launch_native>},
    .compute = {.supports = native_computes, .run = tested<native, enqueue_compute_native>},
    .evaluate = {.run = tested<native, enqueue_evaluate_native>},
    .fused = {.run = tested<native, enqueue_fused_native>},
    .row_functions = {.run = tested<native, enqueue_rows_native>},
    .reduce = {.workspace = reduction_bytes, .run = tested_list<native, enqueue_reduction>},
    .hash = {.run = on_stream<enqueue_hash>},
    .quantize = {.workspace = workspace_native, .run = tested_list<native, enqueue_quantize>},
    .dequantize = {.run = tested_list<native, enqueue_dequantize>},
    .quantize_list = {.supports = backends::has_one_level,
                      .run = tested_list<native, enqueue_list>},
    .quantize_blocks = {.run = tested_list<native, enqueue_quantize_blocks>},
    .dequantize_blocks = {.run = tested_list<native, enqueue_dequantize_blocks>},
    .inspect = {.run = tested_list<native, run_inspect>},
    .scale = {.run = tested_list<native, run_scale>},
    .axpby = {.run = tested_list<native, enqueue_axpby>},
    .accumulate = {.run = tested_list<native, enqueue_accumulate>},
    .cast = {.run = tested_list<native, enqueue_cast>},
    .step = {.run = tested_list<native, enqueue_step>},
    .store = {.run = tested_list<native, enqueue_store>},
    .cross_entropy = {.workspace = cross_entropy_bytes,
                      .run = tested<native, enqueue_cross_entropy_native>},
    .norm_parameters = {.supports = has_norm_parameters,
                        .run = tested<native, enqueue_norm_parameters_native>},
    .fused_quantize = {.run = tested<native, enqueue_fused_quantize_native>},
    .embedding_gradient = {.supports = has_embedding_gradient,
                           .run = tested<native, enqueue_embedding_gradient_native>},
    .memory = &memory,
    .runtime = &runtime,
    .ranks = &native_ranks,
    .prepare_list = prepare_list,
    .scaler = &native_scaler,
    .plan_product = plan_product,
};

namespace {

const backends::backend* const list[] = {&emulated, &native, nullptr};

}  // namespace
}  // namespace samebits::cuda

/// The list of CUDA backends. The core library's registry finds this function through a weak
/// reference.
extern "C" const samebits::backends::backend* const* samebits_cuda_backends() {
  return samebits::cuda::list;
}
