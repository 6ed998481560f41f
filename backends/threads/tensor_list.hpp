// Tensor lists on threads: operations of a host backend (run_with in on_threads.hpp) by functions that
// compute a range of chunks. Splits the chunks among threads and combines the chunks' partial
// statistics.
#pragma once

#include "backends/dispatch/calls/list.hpp"

namespace samebits::backends {

void inspect_on_threads(const list_kernels& kernels, const inspect_call& call,
                        const executor& where);
void scale_on_threads(const list_kernels& kernels, const scale_call& call, const executor& where);
void axpby_on_threads(const list_kernels& kernels, const axpby_call& call, const executor& where);
void accumulate_on_threads(const list_kernels& kernels, const accumulate_call& call,
                           const executor& where);
/// Converts every tensor of a list. Calls convert(call, range) for the elements of each chunk.
void cast_on_threads(void (*convert)(const convert_call&, element_range), const cast_call& call,
                     const executor& where);

}  // namespace samebits::backends
