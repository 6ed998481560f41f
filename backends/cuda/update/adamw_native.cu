// Optimizer steps by the GPU's instructions: AdamW.
#include "backends/cuda/update/launch_update.cuh"

namespace samebits::cuda {

using enum update_rule;
using enum update_profile;

SAMEBITS_LAUNCH_UPDATE(update_hardware, adamw, strict);
SAMEBITS_LAUNCH_UPDATE(update_hardware, adamw, fma);
SAMEBITS_LAUNCH_UPDATE(update_hardware, adamw, torch_foreach);
SAMEBITS_LAUNCH_UPDATE(update_hardware, adamw, torch_fused);
SAMEBITS_LAUNCH_UPDATE(update_hardware, adamw, apex_te);
SAMEBITS_LAUNCH_UPDATE(update_hardware, adamw, lightseq);

}  // namespace samebits::cuda
