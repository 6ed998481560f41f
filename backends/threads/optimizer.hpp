// Optimizer steps, stores and loads on threads: the operations of a host backend (run_with in
// on_threads.hpp) by functions that process a segment of elements.
#pragma once

#include "backends/dispatch/calls/optimizer.hpp"

namespace samebits::backends {

void step_on_threads(const update_kernels& kernels(), const optimizer_call& call,
                     const executor& where);

void store_on_threads(const update_kernels& kernels_of(), const store_call& call,
                      const executor& where);

}  // namespace samebits::backends
