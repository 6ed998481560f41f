// Reductions of the CUDA backends: amax, counts, sum, sum of squares and dot product of matrices;
// hashes of arrays.
#pragma once

#include "backends/cuda/instructions/arithmetic.hpp"
#include "backends/dispatch/calls/hash.hpp"
#include "backends/dispatch/calls/reductions.hpp"

namespace samebits::cuda {

/// Enqueues a reduction. By the definition: loads code by code, and supports any strides and
/// alignment. By hardware: loads 16 bytes at a time if the matrices are dense and aligned to 16 bytes.
/// Waits if the call wants its result in host memory.
void enqueue_reduction(const backends::reduction_call& call, arithmetic by, void* stream);
/// Bytes of device memory that the reduction of a matrix needs; at least one.
std::size_t reduction_bytes(const backends::reduction_call& call);

/// Enqueues hashes of arrays.
void enqueue_hash(const backends::hash_call& call, void* stream);

/// Enqueues the pass over the elements of dense operands that are aligned to 16 bytes.
///
/// @param count elements of each operand
/// @param result device memory. An amax as binary32 bits, or element_counts; they start as zeros. For
///   sums: the partial sum of each chunk of 4096 elements, doubles, or floats for a dot product in
///   binary32
void enqueue_wide(const backends::reduction_call& call, std::uint64_t count, void* result,
                  void* stream);

}  // namespace samebits::cuda
