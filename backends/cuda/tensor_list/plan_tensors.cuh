// Statistics of each tensor of a list, combined from the statistics of its chunks.
#pragma once

#include <cstdint>

#include "backends/cuda/common/sum_tree.cuh"
#include "backends/cuda/tensor_list/plan.hpp"
#include "backends/cuda/tensor_list/plan_total.cuh"
#include "numerics/tensor_list/inspect.hpp"
#include "numerics/tensor_list/plan.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::cuda {

using numerics::chunk_tally;

/// Maximum number of chunks of a small tensor, which one warp combines.
inline constexpr std::uint64_t few_chunks = 32;
/// Threads of a block of tensors_kernel.
inline constexpr int tensor_threads = 256;
/// Chunks of a span: one block combines the chunks to a partial sum of level 22.
///
/// Span k of a tensor starts k * piece_chunks chunks after the tensor. The list is cut into windows
/// of piece_chunks chunks; a span belongs to the window in which it starts. The number of a span is
/// window + tensor. Neither number decreases from a span to the next one, and at least one of them
/// increases, so all spans have different numbers.
inline constexpr std::uint64_t piece_chunks = 1024;

/// Windows of a list.
inline std::uint64_t windows_of(const numerics::plan_tables& plan) {
  return (plan.chunks + piece_chunks - 1) / piece_chunks;
}

/// Entries of inspection_memory::pieces.
inline std::uint64_t piece_places(const numerics::plan_tables& plan) {
  return windows_of(plan) + plan.tensors;
}

/// Chunks of a tensor.
__device__ inline std::uint64_t chunks_of(const numerics::plan_tables& plan, std::uint64_t tensor) {
  const std::uint64_t end =
      tensor + 1 < plan.tensors ? plan.rows[tensor + 1].first_chunk : plan.chunks;
  return end - plan.rows[tensor].first_chunk;
}

/// Combines the chunks of each small tensor. One warp per tensor.
template <class Arithmetic>
__device__ void join_small(const numerics::plan_tables& plan, const chunk_tally* tallies,
                           tensor_statistics* out) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (tensor_threads / 32);
  for (std::uint64_t t = (std::uint64_t{blockIdx.x} * tensor_threads + threadIdx.x) / 32;
       t < plan.tensors; t += warps) {
    const std::uint64_t chunks = chunks_of(plan, t);
    if (chunks > few_chunks) continue;
    chunk_tally c = {};
    if (lane < chunks) c = tallies[plan.rows[t].first_chunk + lane];
    const auto squares = warp_node<Arithmetic>(Arithmetic::from_bits(c.squares));
    const std::uint32_t amax = __reduce_max_sync(all_lanes, c.amax);
    const std::uint32_t nan = __reduce_add_sync(all_lanes, c.nan);
    const std::uint32_t inf = __reduce_add_sync(all_lanes, c.inf);
    const std::uint32_t zeros = __reduce_add_sync(all_lanes, c.zeros);
    const std::uint32_t subnormals = __reduce_add_sync(all_lanes, c.subnormals);
    if (lane == 0) {
      store(out[t], {static_cast<std::uint64_t>(plan.rows[t].count), nan, inf, zeros, subnormals,
                     amax, Arithmetic::bits(squares)});
    }
  }
}

/// Combines the chunks of large tensors. One block per span; the block that finishes a tensor's
/// last span combines the spans.
template <class Arithmetic>
class large_tensors {
  using tree = block_tree<Arithmetic, tensor_threads, piece_chunks / tensor_threads>;
  /// Maximum number of spans in a window: one span of a tensor that began before, and one for each
  /// tensor that can begin in the window.
  static constexpr int most = 1 + (piece_chunks + few_chunks) / (few_chunks + 1);

 public:
  struct shared {
    typename tree::scratch scratch;
    block_figures<tensor_threads> figures;
    unsigned found;
    std::uint64_t pieces[most];  ///< first chunk of each span
    bool is_last;
  };

  __device__ large_tensors(const numerics::plan_tables& plan, const inspection_memory& memory,
                           shared& s)
      : plan_(plan), memory_(memory), s_(s) {}

  /// Combines the spans of this block's windows. All threads of the block must call.
  __device__ void join() {
    for (std::uint64_t first = blockIdx.x * piece_chunks; first < plan_.chunks;
         first += gridDim.x * piece_chunks) {
      if (threadIdx.x == 0) s_.found = 0;
      __syncthreads();
      for (std::uint64_t i = threadIdx.x; i < piece_chunks && first + i < plan_.chunks;
           i += tensor_threads) {
        const std::uint32_t t = plan_.row_of_chunk[first + i];
        const std::uint64_t place = first + i - plan_.rows[t].first_chunk;
        if (place % piece_chunks == 0 && chunks_of(plan_, t) > few_chunks) {
          s_.pieces[atomicAdd(&s_.found, 1u)] = first + i;
        }
      }
      __syncthreads();
      for (unsigned i = 0; i < s_.found; ++i) join_piece(s_.pieces[i]);
      __syncthreads();
    }
  }

 private:
  /// Statistics of the span that starts at a chunk of a tensor.
  __device__ piece_figures& piece_at(std::uint64_t chunk, std::uint32_t tensor) const {
    return memory_.pieces[chunk / piece_chunks + tensor];
  }

  /// Combines the span that starts at chunk `first`, and the tensor's spans if this one is the
  /// last.
  __device__ void join_piece(std::uint64_t first) {
    const std::uint32_t t = plan_.row_of_chunk[first];
    const std::uint64_t chunks = chunks_of(plan_, t), begin = plan_.rows[t].first_chunk;
    const std::uint64_t pieces = (chunks + piece_chunks - 1) / piece_chunks;
    const joined_figures all =
        joined(min(piece_chunks, begin + chunks - first), [&](std::uint64_t i) {
          const chunk_tally c = memory_.tallies[first + i];
          return joined_figures{0, c.nan, c.inf, c.zeros, c.subnormals, c.amax, c.squares};
        });
    if (threadIdx.x == 0) {
      s_.is_last = pieces == 1;
      if (pieces == 1) {
        finish(t, all);
      } else {
        piece_at(first, t).figures = all;
        __threadfence();
        s_.is_last = atomicAdd(&memory_.arrived[t], 1u) == pieces - 1;
      }
    }
    __syncthreads();
    if (pieces == 1 || !s_.is_last) return;
    __threadfence();
    const joined_figures total = joined(pieces, [&](std::uint64_t k) {
      return piece_at(begin + k * piece_chunks, t).from_other_blocks();
    });
    if (threadIdx.x == 0) finish(t, total);
    __syncthreads();
  }

  /// Combines the statistics figures_at(0) to figures_at(count - 1); the result is in thread 0.
  template <class At>
  __device__ joined_figures joined(std::uint64_t count, const At& figures_at) {
    joined_figures own = {};
    const auto sum = tree::sum(count, s_.scratch, [&](std::uint64_t i) {
      const joined_figures f = figures_at(i);
      own.join(f);
      return Arithmetic::from_bits(f.squares);
    });
    joined_figures all = s_.figures.joined(own);
    all.squares = Arithmetic::bits(sum);
    __syncthreads();  // before scratch and figures are used again
    return all;
  }

  /// Stores a tensor's statistics.
  __device__ void finish(std::uint32_t tensor, joined_figures figures) const {
    figures.count = static_cast<std::uint64_t>(plan_.rows[tensor].count);
    store(memory_.tensors[tensor], figures);
  }

  const numerics::plan_tables& plan_;
  const inspection_memory& memory_;
  shared& s_;
};

/// Statistics of each tensor, combined from its chunks.
template <class Arithmetic>
__global__ void __launch_bounds__(tensor_threads)
    tensors_kernel(const numerics::plan_tables plan, const inspection_memory memory) {
  __shared__ typename large_tensors<Arithmetic>::shared shared;
  join_small<Arithmetic>(plan, memory.tallies, memory.tensors);
  large_tensors<Arithmetic>(plan, memory, shared).join();
}

}  // namespace samebits::cuda
