// Optimizer steps by the GPU's instructions: SGD, Lion and LAMB.
#include "backends/cuda/update/launch_update.cuh"

namespace samebits::cuda {

using enum update_rule;
using enum update_profile;

SAMEBITS_LAUNCH_UPDATE(update_hardware, sgd, strict, false);
SAMEBITS_LAUNCH_UPDATE(update_hardware, sgd, fma, false);
SAMEBITS_LAUNCH_UPDATE(update_hardware, sgd, torch_foreach, false);
SAMEBITS_LAUNCH_UPDATE(update_hardware, sgd, strict, true);
SAMEBITS_LAUNCH_UPDATE(update_hardware, sgd, fma, true);
SAMEBITS_LAUNCH_UPDATE(update_hardware, sgd, torch_foreach, true);
SAMEBITS_LAUNCH_UPDATE(update_hardware, lion, strict);
SAMEBITS_LAUNCH_UPDATE(update_hardware, lion, fma);
SAMEBITS_LAUNCH_UPDATE(update_hardware, lamb, strict);
SAMEBITS_LAUNCH_UPDATE(update_hardware, lamb, fma);

}  // namespace samebits::cuda
