// Optimizer steps in integers: Adam with L2.
#include "backends/cuda/update/launch_update.cuh"

namespace samebits::cuda {

using enum update_rule;
using enum update_profile;

SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, adam, strict);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, adam, fma);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, adam, torch_foreach);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, adam, torch_fused);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, adam, apex_te);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, adam, lightseq);

}  // namespace samebits::cuda
