// Reductions of the CUDA backends: amax, counts, sum, sum of squares and dot product of matrices;
// hashes of arrays.
#pragma once

#include "backends/dispatch/calls/hash.hpp"
#include "backends/dispatch/calls/reductions.hpp"

namespace samebits::cuda {

/// Enqueues a reduction on cuda-emulated: loads code by code, and supports any strides and
/// alignment. Waits if the call wants its result in host memory.
void enqueue_reduction_emulated(const backends::reduction_call& call, void* stream);
/// Enqueues a reduction on cuda-native: loads 16 bytes at a time if the matrix is dense and aligned
/// to 16 bytes; else works like cuda-emulated.
void enqueue_reduction_native(const backends::reduction_call& call, void* stream);
/// Bytes of device memory that the reduction of a matrix needs; at least one.
std::size_t reduction_bytes(const backends::reduction_call& call);

/// Enqueues hashes of arrays.
void enqueue_hash(const backends::hash_call& call, void* stream);

/// Enqueues the partial sums of a sum, sum of squares or dot product: one per chunk of 4096
/// elements.
///
/// @param call operands, dense, in device memory aligned to 16 bytes
/// @param count elements of each operand
/// @param partial_sums device memory for the partial sums: doubles, or floats for a dot product in
///   binary32
void enqueue_dense_sums(const backends::reduction_call& call, std::uint64_t count,
                        void* partial_sums, void* stream);
/// Enqueues an amax (binary32 bits) or the counts of a dense matrix of `count` elements, aligned to
/// 16 bytes. *result must start as zeros.
void enqueue_dense_amax(const const_matrix_view& in, std::uint64_t count, std::uint32_t* result,
                        void* stream);
void enqueue_dense_counts(const const_matrix_view& in, std::uint64_t count, element_counts* result,
                          void* stream);

}  // namespace samebits::cuda
