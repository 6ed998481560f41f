// Optimizer steps by the GPU's instructions: Adam with L2.
#include "backends/cuda/update/native_launch.cuh"

namespace samebits::cuda {

void launch_native_adam(std::uint8_t number, const update_launch& call, void* stream) {
  launch_native<formulas::list_of<update_rule::adam>>(number, call, stream);
}

}  // namespace samebits::cuda
