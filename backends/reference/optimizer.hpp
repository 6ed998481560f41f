// Optimizer steps of the reference backend.
#pragma once

#include "backends/dispatch/calls/optimizer.hpp"

namespace samebits::backends {

const update_kernels& reference_update_kernels();

}  // namespace samebits::backends
