// Optimizer steps in integers: SGD, Lion and LAMB.
#include "backends/cuda/update/launch_update.cuh"

namespace samebits::cuda {

using enum update_rule;
using enum update_profile;

SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, sgd, strict, false);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, sgd, fma, false);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, sgd, torch_foreach, false);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, sgd, strict, true);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, sgd, fma, true);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, sgd, torch_foreach, true);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, lion, strict);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, lion, fma);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, lamb, strict);
SAMEBITS_LAUNCH_UPDATE(numerics::update_by_definition, lamb, fma);

}  // namespace samebits::cuda
