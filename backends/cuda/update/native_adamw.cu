// Optimizer steps by the GPU's instructions: AdamW.
#include "backends/cuda/update/native_launch.cuh"

namespace samebits::cuda {

SAMEBITS_NATIVE_UPDATE(adamw<update_profile::strict>);
SAMEBITS_NATIVE_UPDATE(adamw<update_profile::fma>);
SAMEBITS_NATIVE_UPDATE(adamw<update_profile::torch_foreach>);
SAMEBITS_NATIVE_UPDATE(adamw<update_profile::torch_fused>);
SAMEBITS_NATIVE_UPDATE(adamw<update_profile::apex_te>);
SAMEBITS_NATIVE_UPDATE(adamw<update_profile::lightseq>);

}  // namespace samebits::cuda
