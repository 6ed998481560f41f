// Sorted rows: the rows of a call in the order of their words, rows of a word rising. A stable radix
// sort, of the 8 lowest bits of the words first.
//
//   words   2 0 2 1 0     one warp counts the digits of a segment, one block adds the counts up,
//   rows    1 4 3 0 2     and the warps move the rows of their segments behind those of earlier ones
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/common/workspace.hpp"
#include "backends/cuda/instructions/warp.cuh"

namespace samebits::cuda {

inline constexpr int sorted_digits = 256;  ///< of 8 bits
inline constexpr int segment_rows = 256;
inline constexpr int warp_rows = 32;

/// Rows with their words, and a copy into which a pass of the sort moves them.
struct rows_of_words {
  std::uint32_t* words[2];
  std::int64_t* rows[2];
  std::uint32_t* counts;  ///< [sorted_digits, segments]
  std::int64_t count;
  std::int64_t segments;
  std::size_t bytes;  ///< of the memory

  rows_of_words(memory_layout layout, std::int64_t n)
      : count(n), segments((n + segment_rows - 1) / segment_rows) {
    const auto size = static_cast<std::size_t>(n);
    for (std::int64_t*& copy : rows) copy = layout.take<std::int64_t>(size);
    for (std::uint32_t*& copy : words) copy = layout.take<std::uint32_t>(size);
    counts = layout.take<std::uint32_t>(static_cast<std::size_t>(sorted_digits * segments));
    bytes = layout.bytes();
  }
};

/// Writes every row and its word; the word `none` where the index is none of a word, or is padding.
inline __global__ void write_words(const std::int64_t* indices, std::int64_t padding,
                                   std::uint32_t none, const rows_of_words d) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < d.count;
       i += step) {
    const std::int64_t index = indices[i];
    const bool valid = index >= 0 && index < none && index != padding;
    d.words[0][i] = valid ? static_cast<std::uint32_t>(index) : none;
    d.rows[0][i] = i;
  }
}

__device__ inline std::uint32_t digit_of(std::uint32_t word, int shift) {
  return (word >> shift) % sorted_digits;
}

/// Counts the digits of each segment. One warp a segment.
inline __global__ void count_digits(const rows_of_words d, int from, int shift) {
  __shared__ std::uint32_t counts[sorted_digits];
  for (int i = static_cast<int>(threadIdx.x); i < sorted_digits; i += warp_rows) counts[i] = 0;
  __syncwarp();
  const std::int64_t first = std::int64_t{blockIdx.x} * segment_rows;
  for (std::int64_t i = first + threadIdx.x; i < first + segment_rows && i < d.count;
       i += warp_rows) {
    atomicAdd(&counts[digit_of(d.words[from][i], shift)], 1u);
  }
  __syncwarp();
  for (int i = static_cast<int>(threadIdx.x); i < sorted_digits; i += warp_rows) {
    d.counts[i * d.segments + blockIdx.x] = counts[i];
  }
}

/// Replaces each count by the sum of those before it. One block.
inline __global__ void __launch_bounds__(1024) add_counts(const rows_of_words d) {
  __shared__ std::uint32_t sums[1024];
  const std::int64_t all = sorted_digits * d.segments, each = (all + blockDim.x - 1) / blockDim.x;
  const std::int64_t begin = threadIdx.x * each, end = begin + each < all ? begin + each : all;
  std::uint32_t sum = 0;
  for (std::int64_t i = begin; i < end; ++i) sum += d.counts[i];
  sums[threadIdx.x] = sum;
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    __syncthreads();
    const std::uint32_t before = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
    __syncthreads();
    sums[threadIdx.x] += before;
  }
  std::uint32_t next = sums[threadIdx.x] - sum;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::uint32_t count = d.counts[i];
    d.counts[i] = next;
    next += count;
  }
}

/// Moves the rows to their places by one digit. One warp a segment, in the order of its rows.
inline __global__ void move_rows(const rows_of_words d, int from, int shift) {
  __shared__ std::uint32_t places[sorted_digits];
  for (int i = static_cast<int>(threadIdx.x); i < sorted_digits; i += warp_rows) {
    places[i] = d.counts[i * d.segments + blockIdx.x];
  }
  __syncwarp();
  const std::int64_t first = std::int64_t{blockIdx.x} * segment_rows;
  const std::uint32_t before = (1u << threadIdx.x) - 1;  // lanes below this one
  for (std::int64_t start = first; start < first + segment_rows && start < d.count;
       start += warp_rows) {
    const std::int64_t i = start + threadIdx.x;
    const bool inside = i < d.count;
    const std::uint32_t word = inside ? d.words[from][i] : 0;
    const std::uint32_t digit = inside ? digit_of(word, shift) : sorted_digits;
    const std::uint32_t alike = __match_any_sync(all_lanes, digit);
    const std::uint32_t place = inside ? places[digit] : 0;
    __syncwarp();
    if (inside) {
      const auto behind = static_cast<std::uint32_t>(__popc(alike & before));
      if (behind == 0) places[digit] = place + static_cast<std::uint32_t>(__popc(alike));
      d.words[1 - from][place + behind] = word;
      d.rows[1 - from][place + behind] = d.rows[from][i];
    }
    __syncwarp();
  }
}

/// Enqueues the sort of a call's rows. Returns which copy is sorted.
inline int sort_rows(const rows_of_words& d, const std::int64_t* indices, std::int64_t padding,
                     std::uint32_t words, cudaStream_t stream) {
  constexpr const char* what = "embedding gradient: sort";
  const auto segments = static_cast<unsigned>(d.segments);
  launch_kernel(what, write_words, segments, segment_rows, 0, stream, indices, padding, words, d);
  int from = 0;
  for (int shift = 0; shift < static_cast<int>(std::bit_width(words)); shift += 8) {
    launch_kernel(what, count_digits, segments, warp_rows, 0, stream, d, from, shift);
    launch_kernel(what, add_counts, 1, 1024, 0, stream, d);
    launch_kernel(what, move_rows, segments, warp_rows, 0, stream, d, from, shift);
    from = 1 - from;
  }
  return from;
}

}  // namespace samebits::cuda
