// Optimizer steps in integers: AdamW.
#include "backends/cuda/update/launch_update.cuh"

namespace samebits::cuda {

using enum update_rule;
using enum update_profile;

SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, adamw, strict);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, adamw, fma);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, adamw, torch_foreach);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, adamw, torch_fused);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, adamw, apex_te);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, adamw, lightseq);

}  // namespace samebits::cuda
