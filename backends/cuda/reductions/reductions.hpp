// The CUDA backends' reductions.
#pragma once

#include "backends/dispatch/reductions.hpp"

namespace samebits::cuda {

/// Codes one by one, of any layout.
extern const backends::reducer emulated_reducer;
/// 16 bytes at a time where a matrix has no gaps and starts on a 16-byte border; else the same.
extern const backends::reducer native_reducer;

/// Of a matrix [count] without gaps, in device memory aligned to 16 bytes. Sums and dot products:
/// the nodes of chunks of 4096 elements, in doubles, or floats for a dot product in binary32.
void enqueue_dense_nodes(const backends::reduction_call& call, std::uint64_t count, void* nodes,
                         void* stream);
/// Into zeros.
void enqueue_dense_amax(const const_matrix_view& in, std::uint64_t count, std::uint32_t* result,
                        void* stream);
void enqueue_dense_counts(const const_matrix_view& in, std::uint64_t count, element_counts* result,
                          void* stream);

}  // namespace samebits::cuda
