// Optimizer steps, stores and loads on threads: makes the operations of a host backend
// (operation_entry::run) from functions that process a segment of elements.
#pragma once

#include "backends/dispatch/calls/optimizer.hpp"

namespace samebits::backends {

void step_on_threads(const update_kernels& kernels, const optimizer_call& call,
                     const executor& where);

void store_on_threads(const update_kernels& kernels, const store_call& call, const executor& where);

template <const update_kernels& Kernels()>
void step_on_threads(const optimizer_call& call, const executor& where) {
  step_on_threads(Kernels(), call, where);
}
template <const update_kernels& Kernels()>
void store_on_threads(const store_call& call, const executor& where) {
  store_on_threads(Kernels(), call, where);
}

}  // namespace samebits::backends
