// Optimizer steps by the GPU's instructions: SGD and Lion.
#include "backends/cuda/update/native_launch.cuh"

namespace samebits::cuda {

SAMEBITS_NATIVE_UPDATE(sgd<update_profile::strict, false>);
SAMEBITS_NATIVE_UPDATE(sgd<update_profile::fma, false>);
SAMEBITS_NATIVE_UPDATE(sgd<update_profile::torch_foreach, false>);
SAMEBITS_NATIVE_UPDATE(sgd<update_profile::strict, true>);
SAMEBITS_NATIVE_UPDATE(sgd<update_profile::fma, true>);
SAMEBITS_NATIVE_UPDATE(sgd<update_profile::torch_foreach, true>);
SAMEBITS_NATIVE_UPDATE(lion<update_profile::strict>);
SAMEBITS_NATIVE_UPDATE(lion<update_profile::fma>);

}  // namespace samebits::cuda
