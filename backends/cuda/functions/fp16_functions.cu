// Functions of fp16 arrays by the GPU's instructions, for cuda-native.
#include "backends/cuda/functions/functions.hpp"
#include "backends/cuda/functions/instruction_functions.cuh"

namespace samebits::cuda {

void launch_fp16_functions(const backends::evaluate_call& call, void* stream) {
  launch_functions<format_id::fp16, false>(call, stream);
}

}  // namespace samebits::cuda
