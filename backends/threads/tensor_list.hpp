// Tensor lists on threads: makes operations of a host backend (operation_entry::run) from functions
// that compute a range of chunks. Splits the chunks among threads and combines the chunks' partial
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

template <const list_kernels& Kernels>
void inspect_on_threads(const inspect_call& call, const executor& where) {
  inspect_on_threads(Kernels, call, where);
}
template <const list_kernels& Kernels>
void scale_on_threads(const scale_call& call, const executor& where) {
  scale_on_threads(Kernels, call, where);
}
template <const list_kernels& Kernels>
void axpby_on_threads(const axpby_call& call, const executor& where) {
  axpby_on_threads(Kernels, call, where);
}
template <const list_kernels& Kernels>
void accumulate_on_threads(const accumulate_call& call, const executor& where) {
  accumulate_on_threads(Kernels, call, where);
}
template <void (*Convert)(const convert_call&, element_range)>
void cast_on_threads(const cast_call& call, const executor& where) {
  cast_on_threads(Convert, call, where);
}

}  // namespace samebits::backends
