// Loss scaling and gradient reduction on CUDA: the functions of both backends.
#pragma once

#include "backends/loss_scaler/resident.hpp"
#include "backends/ranks/rank_functions.hpp"

namespace samebits::cuda {

/// Functions that use a communicator on device memory.
extern const backends::device_rank_functions emulated_ranks;
extern const backends::device_rank_functions native_ranks;

/// Loss scaling in the caller's memory.
extern const backends::device_scaler_functions emulated_scaler;
extern const backends::device_scaler_functions native_scaler;

}  // namespace samebits::cuda
