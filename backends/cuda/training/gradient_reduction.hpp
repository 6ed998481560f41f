// Gradient reduction on CUDA: the steps between the messages of a communicator.
#pragma once

#include "backends/cuda/instructions/arithmetic.hpp"
#include "backends/ranks/rank_functions.hpp"
#include "samebits/communicator.hpp"
#include "samebits/distributed.hpp"

namespace samebits::cuda {

/// device_rank_functions::reduce.
template <arithmetic By>
void reduce_gradients(communicator& ranks, const backends::list_data& list,
                      const gradient_reduction& how);

/// The rank functions of cuda-emulated and cuda-native.
extern const backends::device_rank_functions emulated_ranks;
extern const backends::device_rank_functions native_ranks;

}  // namespace samebits::cuda
