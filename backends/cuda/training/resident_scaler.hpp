// Loss scaling in the caller's memory on CUDA: the functions of both backends.
#pragma once

#include "backends/loss_scaler/resident.hpp"

namespace samebits::cuda {

extern const backends::device_scaler_functions emulated_scaler;
extern const backends::device_scaler_functions native_scaler;

}  // namespace samebits::cuda
