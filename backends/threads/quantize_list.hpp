// Lists of tensors to quantize, on threads: makes the operation of a host backend
// (operation_entry::run) from its quantization of one matrix.
#pragma once

#include "backends/dispatch/calls/quantize.hpp"

namespace samebits::backends {

/// Quantizes large tensors one after another, each split among the threads. Small tensors are not
/// worth a second thread; each runs whole on one thread. Allocates all memory before writing any
/// output.
void quantize_each(void (*quantize_one)(const quantize_call&, const executor&),
                   const quantize_list_data& list, const executor& where);

template <void (*QuantizeOne)(const quantize_call&, const executor&)>
void quantize_each(const quantize_list_data& list, const executor& where) {
  quantize_each(QuantizeOne, list, where);
}

}  // namespace samebits::backends
