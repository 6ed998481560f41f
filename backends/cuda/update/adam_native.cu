// Optimizer steps by the GPU's instructions: Adam with L2.
#include "backends/cuda/update/launch_update.cuh"

namespace samebits::cuda {

using enum update_rule;
using enum update_profile;

SAMEBITS_LAUNCH_UPDATE(update_hardware, adam, strict);
SAMEBITS_LAUNCH_UPDATE(update_hardware, adam, fma);
SAMEBITS_LAUNCH_UPDATE(update_hardware, adam, torch_foreach);
SAMEBITS_LAUNCH_UPDATE(update_hardware, adam, torch_fused);
SAMEBITS_LAUNCH_UPDATE(update_hardware, adam, apex_te);
SAMEBITS_LAUNCH_UPDATE(update_hardware, adam, lightseq);

}  // namespace samebits::cuda
