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
#include "backends/cuda/training/training.hpp"
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

/// Requires the self-test of the backend, then enqueues a call by its arithmetic.
template <arithmetic By, auto Enqueue, class Call>
void tested(const Call& call, const executor& where) {
  backends::require_tested(By == arithmetic::hardware ? native : emulated, where.stream);
  Enqueue(call, By, where.stream);
}

/// The table of cuda-emulated or cuda-native.
template <arithmetic By>
constexpr backends::backend table() {
  constexpr bool by_hardware = By == arithmetic::hardware;
  constexpr auto convert = by_hardware ? launch_native : launch_emulated;
  return {
      .name = by_hardware ? "cuda-native" : "cuda-emulated",
      .description = by_hardware ? "CUDA, hardware conversions where proved equal"
                                 : "CUDA, the definition in a kernel",
      .space = memory_space::device,
      .why_unsupported = by_hardware ? why_not_native : why_not_emulated,
      .self_test = by_hardware ? &native_self_test : &emulated_self_test,
      .convert = {.supports = by_hardware ? native_supports : nullptr, .run = on_stream<convert>},
      .compute = {.supports = by_hardware ? native_computes : nullptr,
                  .run = tested<By, enqueue_compute>},
      .evaluate = {.run = tested<By, enqueue_evaluate>},
      .fused = {.run = tested<By, enqueue_fused>},
      .row_functions = {.run = tested<By, enqueue_rows>},
      .reduce = {.workspace = reduction_bytes, .run = tested<By, enqueue_reduction>},
      .hash = {.run = on_stream<enqueue_hash>},
      .quantize = {.workspace = by_hardware ? workspace_native : general_workspace,
                   .run = tested<By, enqueue_quantize>},
      .dequantize = {.run = tested<By, enqueue_dequantize>},
      .quantize_list = {.supports = backends::has_one_level, .run = tested<By, enqueue_list>},
      .quantize_blocks = {.run = tested<By, enqueue_quantize_blocks>},
      .dequantize_blocks = {.run = tested<By, enqueue_dequantize_blocks>},
      .inspect = {.run = tested<By, run_inspect>},
      .scale = {.run = tested<By, run_scale>},
      .axpby = {.run = tested<By, enqueue_axpby>},
      .accumulate = {.run = tested<By, enqueue_accumulate>},
      .cast = {.run = tested<By, enqueue_cast>},
      .step = {.run = tested<By, enqueue_step>},
      .store = {.run = tested<By, enqueue_store>},
      .cross_entropy = {.workspace = cross_entropy_bytes, .run = tested<By, enqueue_cross_entropy>},
      .norm_parameters = {.supports = has_norm_parameters,
                          .run = tested<By, enqueue_norm_parameters>},
      .fused_quantize = {.run = tested<By, enqueue_fused_quantize>},
      .embedding_gradient = {.supports = has_embedding_gradient,
                             .run = tested<By, enqueue_embedding_gradient>},
      .memory = &memory,
      .runtime = &runtime,
      .ranks = by_hardware ? &native_ranks : &emulated_ranks,
      .prepare_list = prepare_list,
      .scaler = by_hardware ? &native_scaler : &emulated_scaler,
      .plan_product = by_hardware ? plan_product : nullptr,
  };
}

}  // namespace

constinit const backends::backend emulated = table<arithmetic::by_definition>();
constinit const backends::backend native = table<arithmetic::hardware>();

namespace {

const backends::backend* const list[] = {&emulated, &native, nullptr};

}  // namespace
}  // namespace samebits::cuda

/// The list of CUDA backends. The core library's registry finds this function through a weak
/// reference.
extern "C" const samebits::backends::backend* const* samebits_cuda_backends() {
  return samebits::cuda::list;
}
