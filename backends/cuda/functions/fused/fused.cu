// Fused elements on the CUDA backends: chooses the kernels of a call, and those in integers.
#include "backends/cuda/functions/functions.hpp"
#include "backends/cuda/functions/fused/fused_kernel.cuh"
#include "backends/dispatch/visit.hpp"

namespace samebits::cuda {

void enqueue_fused_emulated(const backends::fused_call& call, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (call.plan.f.format == format_id::fp32) {
    launch_fused<definition_rows<4>, any_fused, 1>(call, on);
  } else {
    launch_fused<definition_rows<2>, any_fused, 1>(call, on);
  }
}

void enqueue_fused_native(const backends::fused_call& call, void* stream) {
  if (!units_hold()) return enqueue_fused_emulated(call, stream);
  backends::visit_quantized(call.plan.f.format,
                            [&]<format_id Format>() { launch_native_fused<Format>(call, stream); });
}

}  // namespace samebits::cuda
