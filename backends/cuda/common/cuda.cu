// The backend tables of cuda-emulated and cuda-native, and the reasons why a machine cannot run
// them.
#include <string>

#include "backends/cuda/arithmetic/arithmetic.hpp"
#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/runtime.hpp"
#include "backends/cuda/quantize/quantize.hpp"
#include "backends/cuda/reductions/reductions.hpp"
#include "backends/cuda/tensor_list/plan.hpp"
#include "backends/cuda/training/gradient_reduction.hpp"
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

}  // namespace

const backends::backend emulated = {
    .name = "cuda-emulated",
    .description = "CUDA, the definition in a kernel",
    .space = memory_space::device,
    .why_unsupported = why_not_emulated,
    .has = backends::has_everything,
    .launch = launch_emulated,
    .self_test = &emulated_self_test,
    .memory = &memory,
    .quantizes = &emulated_quantizer,
    .computes = &emulated_calculator,
    .device_plans = &emulated_plans,
    .reduces = &emulated_reducer,
    .device_ranks = &emulated_ranks,
    .runtime = &runtime,
};

const backends::backend native = {
    .name = "cuda-native",
    .description = "CUDA, hardware conversions where proved equal",
    .space = memory_space::device,
    .why_unsupported = why_not_native,
    .has = native_has,
    .launch = launch_native,
    .self_test = &native_self_test,
    .memory = &memory,
    .quantizes = &native_quantizer,
    .computes = &native_calculator,
    .device_plans = &native_plans,
    .reduces = &native_reducer,
    .device_ranks = &native_ranks,
    .runtime = &runtime,
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
