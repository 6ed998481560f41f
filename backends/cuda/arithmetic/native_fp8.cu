// Array arithmetic by the GPU's instructions: e4m3 and e5m2.
#include "backends/cuda/arithmetic/word_dispatch.cuh"

namespace samebits::cuda {

void launch_fp8_words(const backends::compute_call& call, const word_task& t, cudaStream_t stream) {
  const overflow policy = call.rule.overflow;
  if (call.out.format == format_id::e4m3) {
    return launch_format<format_id::e4m3>(call.op, policy, t, stream);
  }
  launch_format<format_id::e5m2>(call.op, policy, t, stream);
}

}  // namespace samebits::cuda
