// Optimizer steps by the GPU's instructions: the other rules.
#include "backends/cuda/update/native_launch.cuh"

namespace samebits::cuda {

void launch_native_others(std::uint8_t number, const update_launch& call, void* stream) {
  launch_native<formulas::of_others>(number, call, stream);
}

}  // namespace samebits::cuda
