// Statistics of each tensor of a list, combined from the statistics of its chunks.
#pragma once

#include <cstdint>

#include "backends/cuda/common/sum_tree.cuh"
#include "backends/cuda/tensor_list/list.hpp"
#include "backends/cuda/tensor_list/list_total.cuh"
#include "numerics/tensor_list/inspect.hpp"
#include "numerics/tensor_list/list.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::cuda {

using numerics::chunk_statistics;

/// Maximum number of chunks of a small tensor, which one warp combines.
inline constexpr std::uint64_t few_chunks = 32;
/// Threads of a block of tensors_kernel.
inline constexpr int tensor_threads = 256;
/// Chunks of a span: one block combines the chunks to a partial sum of level 22.
///
/// Span k of a tensor starts k * span_chunks chunks after the tensor. The list is cut into windows
/// of span_chunks chunks; a span belongs to the window in which it starts. The number of a span is
/// window + tensor. Neither number decreases from a span to the next one, and at least one of them
/// increases, so all spans have different numbers.
inline constexpr std::uint64_t span_chunks = 1024;

/// Windows of a list.
inline std::uint64_t windows_of(const numerics::tensor_tables& list) {
  return (list.chunks + span_chunks - 1) / span_chunks;
}

/// Entries of inspection_memory::spans.
inline std::uint64_t span_count(const numerics::tensor_tables& list) {
  return windows_of(list) + list.tensors;
}

/// Chunks of a tensor.
__device__ inline std::uint64_t chunks_of(const numerics::tensor_tables& list,
                                          std::uint64_t tensor) {
  const std::uint64_t end =
      tensor + 1 < list.tensors ? list.rows[tensor + 1].first_chunk : list.chunks;
  return end - list.rows[tensor].first_chunk;
}

/// Combines the chunks of each small tensor. One warp per tensor.
template <class Arithmetic>
__device__ void combine_small(const numerics::tensor_tables& list,
                              const chunk_statistics* partial_statistics, tensor_statistics* out) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (tensor_threads / 32);
  for (std::uint64_t t = (std::uint64_t{blockIdx.x} * tensor_threads + threadIdx.x) / 32;
       t < list.tensors; t += warps) {
    const std::uint64_t chunks = chunks_of(list, t);
    if (chunks > few_chunks) continue;
    chunk_statistics c = {};
    if (lane < chunks) c = partial_statistics[list.rows[t].first_chunk + lane];
    const auto squares = warp_partial_sum<Arithmetic>(Arithmetic::from_bits(c.squares));
    const std::uint32_t amax = __reduce_max_sync(all_lanes, c.amax);
    const std::uint32_t nan = __reduce_add_sync(all_lanes, c.nan);
    const std::uint32_t inf = __reduce_add_sync(all_lanes, c.inf);
    const std::uint32_t zeros = __reduce_add_sync(all_lanes, c.zeros);
    const std::uint32_t subnormals = __reduce_add_sync(all_lanes, c.subnormals);
    if (lane == 0) {
      store(out[t], {static_cast<std::uint64_t>(list.rows[t].count), nan, inf, zeros, subnormals,
                     amax, Arithmetic::bits(squares)});
    }
  }
}

/// Combines the chunks of large tensors. One block per span; the block that finishes a tensor's
/// last span combines the spans.
template <class Arithmetic>
class large_tensors {
  using tree = block_tree<Arithmetic, tensor_threads, span_chunks / tensor_threads>;
  /// Maximum number of spans in a window: one span of a tensor that began before, and one for each
  /// tensor that can begin in the window.
  static constexpr int maximum = 1 + (span_chunks + few_chunks) / (few_chunks + 1);

 public:
  struct shared {
    typename tree::scratch scratch;
    block_statistics<tensor_threads> totals;
    unsigned found;
    std::uint64_t spans[maximum];  ///< first chunk of each span
    bool is_last;
  };

  __device__ large_tensors(const numerics::tensor_tables& list, const inspection_memory& memory,
                           shared& s)
      : list_(list), memory_(memory), s_(s) {}

  /// Combines the spans of this block's windows. All threads of the block must call.
  __device__ void combine() {
    for (std::uint64_t first = blockIdx.x * span_chunks; first < list_.chunks;
         first += gridDim.x * span_chunks) {
      if (threadIdx.x == 0) s_.found = 0;
      __syncthreads();
      for (std::uint64_t i = threadIdx.x; i < span_chunks && first + i < list_.chunks;
           i += tensor_threads) {
        const std::uint32_t t = list_.row_of_chunk[first + i];
        const std::uint64_t chunk_of_tensor = first + i - list_.rows[t].first_chunk;
        if (chunk_of_tensor % span_chunks == 0 && chunks_of(list_, t) > few_chunks) {
          s_.spans[atomicAdd(&s_.found, 1u)] = first + i;
        }
      }
      __syncthreads();
      for (unsigned i = 0; i < s_.found; ++i) combine_span(s_.spans[i]);
      __syncthreads();
    }
  }

 private:
  /// Statistics of the span that starts at a chunk of a tensor.
  __device__ combined_statistics& span_at(std::uint64_t chunk, std::uint32_t tensor) const {
    return memory_.spans[chunk / span_chunks + tensor];
  }

  /// Combines the span that starts at chunk `first`, and the tensor's spans if this one is the
  /// last.
  __device__ void combine_span(std::uint64_t first) {
    const std::uint32_t t = list_.row_of_chunk[first];
    const std::uint64_t chunks = chunks_of(list_, t), begin = list_.rows[t].first_chunk;
    const std::uint64_t spans = (chunks + span_chunks - 1) / span_chunks;
    const combined_statistics all =
        combined(min(span_chunks, begin + chunks - first), [&](std::uint64_t i) {
          const chunk_statistics c = memory_.partial_statistics[first + i];
          return combined_statistics{0, c.nan, c.inf, c.zeros, c.subnormals, c.amax, c.squares};
        });
    if (threadIdx.x == 0) {
      s_.is_last = spans == 1;
      if (spans == 1) {
        finish(t, all);
      } else {
        span_at(first, t) = all;
        __threadfence();
        s_.is_last = atomicAdd(&memory_.arrived[t], 1u) == spans - 1;
      }
    }
    __syncthreads();
    if (spans == 1 || !s_.is_last) return;
    __threadfence();
    const combined_statistics total = combined(spans, [&](std::uint64_t k) {
      return from_other_block(&span_at(begin + k * span_chunks, t));
    });
    if (threadIdx.x == 0) finish(t, total);
    __syncthreads();
  }

  /// Combines the statistics statistics_at(0) to statistics_at(count - 1); the result is in thread
  /// 0.
  template <class At>
  __device__ combined_statistics combined(std::uint64_t count, const At& statistics_at) {
    combined_statistics own = {};
    const auto sum = tree::sum(count, s_.scratch, [&](std::uint64_t i) {
      const combined_statistics f = statistics_at(i);
      own.combine(f);
      return Arithmetic::from_bits(f.squares);
    });
    combined_statistics all = s_.totals.combined(own);
    all.squares = Arithmetic::bits(sum);
    __syncthreads();  // before scratch and totals are used again
    return all;
  }

  /// Stores a tensor's statistics.
  __device__ void finish(std::uint32_t tensor, combined_statistics totals) const {
    totals.count = static_cast<std::uint64_t>(list_.rows[tensor].count);
    store(memory_.tensors[tensor], totals);
  }

  const numerics::tensor_tables& list_;
  const inspection_memory& memory_;
  shared& s_;
};

/// Statistics of each tensor, combined from its chunks.
template <class Arithmetic>
__global__ void __launch_bounds__(tensor_threads)
    tensors_kernel(const numerics::tensor_tables list, const inspection_memory memory) {
  __shared__ typename large_tensors<Arithmetic>::shared shared;
  combine_small<Arithmetic>(list, memory.partial_statistics, memory.tensors);
  large_tensors<Arithmetic>(list, memory, shared).combine();
}

}  // namespace samebits::cuda
