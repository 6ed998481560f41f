// Lists of tensors to quantize, on threads: the operation of a host backend (run_with in
// on_threads.hpp) by its quantization of one matrix.
#pragma once

#include "backends/dispatch/calls/quantize.hpp"

namespace samebits::backends {

/// Quantizes large tensors one after another, each split among the threads. Small tensors are not
/// worth a second thread; each runs whole on one thread. Allocates all memory before writing any
/// output.
void quantize_each(void (*quantize_one)(const quantize_call&, const executor&),
                   const quantize_list_data& list, const executor& where);

}  // namespace samebits::backends
