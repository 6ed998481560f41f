// Functions of fp32 arrays by the GPU's instructions, for cuda-native.
#include "backends/cuda/functions/functions.hpp"
#include "backends/cuda/functions/instruction_functions.cuh"

namespace samebits::cuda {

void launch_fp32_functions(const backends::evaluate_call& call, void* stream) {
  launch_functions<format_id::fp32, false>(call, stream);
}

}  // namespace samebits::cuda
