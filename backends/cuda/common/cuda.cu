// The CUDA backends' entries, and whether this machine can run them.
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

std::string why_not_emulated() { return code_of_current_device().reason; }

std::string dotted(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

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

const backends::backend emulated = {"cuda-emulated",
                                    "CUDA, the definition in a kernel",
                                    memory_space::device,
                                    why_not_emulated,
                                    backends::has_everything,
                                    nullptr,
                                    launch_emulated,
                                    &emulated_self_test,
                                    &memory,
                                    &emulated_quantizer,
                                    &emulated_calculator,
                                    nullptr,
                                    &emulated_plans,
                                    &emulated_reducer,
                                    nullptr,
                                    &emulated_ranks,
                                    &runtime};

const backends::backend native = {"cuda-native",
                                  "CUDA, hardware conversions where proved equal",
                                  memory_space::device,
                                  why_not_native,
                                  native_has,
                                  nullptr,
                                  launch_native,
                                  &native_self_test,
                                  &memory,
                                  &native_quantizer,
                                  &native_calculator,
                                  nullptr,
                                  &native_plans,
                                  &native_reducer,
                                  nullptr,
                                  &native_ranks,
                                  &runtime};

namespace {

const backends::backend* const list[] = {&emulated, &native, nullptr};

}  // namespace
}  // namespace samebits::cuda

/// Found by the registry of the core library through a weak reference.
extern "C" const samebits::backends::backend* const* samebits_cuda_backends() {
  return samebits::cuda::list;
}
