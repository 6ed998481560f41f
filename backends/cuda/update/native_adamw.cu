// Optimizer steps by the GPU's instructions: AdamW.
#include "backends/cuda/update/native_launch.cuh"

namespace samebits::cuda {

void launch_native_adamw(std::uint8_t number, const update_launch& call, void* stream) {
  launch_native<formulas::list_of<update_rule::adamw>>(number, call, stream);
}

}  // namespace samebits::cuda
