// Inspecting a plan on CUDA: one launch over all chunks, one over all tensors, one for the total.
#include <algorithm>
#include <type_traits>

#include "backends/cuda/error.hpp"
#include "backends/cuda/plan.hpp"
#include "backends/cuda/plan_inspect.cuh"
#include "backends/cuda/plan_launch.cuh"
#include "backends/cuda/plan_total.cuh"
#include "backends/cuda/plan_tree.cuh"

namespace samebits::cuda {
namespace {

using numerics::plan_tables;

/// Counts of exponents that a block keeps to itself until its end. At most as many elements as a
/// block reads: plan_blocks() sees to it that 32 bits are enough.
template <inspect_counts Counts>
struct block_exponents {
  static constexpr bool counted = Counts == inspect_counts::distribution;
  unsigned buckets[counted ? numerics::exponent_buckets : 1];

  __device__ __forceinline__ void clear() {
    if constexpr (counted) {
      static_assert(plan_threads == numerics::exponent_buckets);
      buckets[threadIdx.x] = 0;
      __syncthreads();
    }
  }
  __device__ __forceinline__ void add_to(std::uint64_t* exponents) {
    if constexpr (counted) {
      __syncthreads();
      const unsigned long long seen = buckets[threadIdx.x];
      if (seen != 0) {
        atomicAdd(reinterpret_cast<unsigned long long*>(&exponents[threadIdx.x]), seen);
      }
    }
  }
};

/// Chunks of regular tensors, by the hardware.
template <inspect_counts Counts>
__global__ void __launch_bounds__(plan_threads, plan_residents)
    regular_chunks_kernel(const plan_tables plan, chunk_tally* const tallies,
                          std::uint64_t* const exponents) {
  __shared__ block_exponents<Counts> counts;
  __shared__ chunk_ring rings[plan_threads / 32];
  chunk_ring& ring = rings[threadIdx.x / 32];
  counts.clear();
  for_each_chunk(plan,
                 [&](const plan_row& row, const plan_chunk& c, std::uint64_t chunk, unsigned lane) {
                   if (!is_regular(row)) return;
                   const auto* const first = static_cast<const std::byte*>(row.data);
                   const auto count = static_cast<int>(c.count);
                   chunk_tally tally;
                   switch (row.format) {
                     case format_id::fp32:
                       tally = inspected_dense<format_id::fp32, Counts>(first + c.first * 4, count,
                                                                        lane, ring, counts.buckets);
                       break;
                     case format_id::fp16:
                       tally = inspected_dense<format_id::fp16, Counts>(first + c.first * 2, count,
                                                                        lane, ring, counts.buckets);
                       break;
                     default:
                       tally = inspected_dense<format_id::bf16, Counts>(first + c.first * 2, count,
                                                                        lane, ring, counts.buckets);
                       break;
                   }
                   if (lane == 0) tallies[chunk] = tally;
                 });
  counts.add_to(exponents);
}

/// Chunks of the tensors that are not regular, or of all.
template <class Sums, inspect_counts Counts>
__global__ void __launch_bounds__(plan_threads)
    any_chunks_kernel(const plan_tables plan, const bool all, chunk_tally* const tallies,
                      std::uint64_t* const exponents) {
  __shared__ block_exponents<Counts> counts;
  counts.clear();
  for_each_chunk(
      plan, [&](const plan_row& row, const plan_chunk& c, std::uint64_t chunk, unsigned lane) {
        if (!all && is_regular(row)) return;
        const chunk_tally tally = inspected_any<Sums, Counts>(row, c, lane, counts.buckets);
        if (lane == 0) tallies[chunk] = tally;
      });
  counts.add_to(exponents);
}

/// Chunks of a tensor up to which one warp joins them.
constexpr std::uint64_t few_chunks = 32;
constexpr int tensor_threads = 1024;

__device__ std::uint64_t chunks_of(const plan_tables& plan, std::uint64_t tensor) {
  const std::uint64_t end =
      tensor + 1 < plan.tensors ? plan.rows[tensor + 1].first_chunk : plan.chunks;
  return end - plan.rows[tensor].first_chunk;
}

/// Tensors of few chunks, a warp for each.
template <class Sums>
__device__ void join_small(const plan_tables& plan, const chunk_tally* tallies,
                           tensor_statistics* out) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (tensor_threads / 32);
  for (std::uint64_t t = (std::uint64_t{blockIdx.x} * tensor_threads + threadIdx.x) / 32;
       t < plan.tensors; t += warps) {
    const std::uint64_t chunks = chunks_of(plan, t);
    if (chunks > few_chunks) continue;
    chunk_tally c = {};
    if (lane < chunks) c = tallies[plan.rows[t].first_chunk + lane];
    const auto squares = warp_node<Sums>(Sums::from_bits(c.squares));
    const std::uint32_t amax = __reduce_max_sync(all_lanes, c.amax);
    const std::uint32_t nan = __reduce_add_sync(all_lanes, c.nan);
    const std::uint32_t inf = __reduce_add_sync(all_lanes, c.inf);
    const std::uint32_t zeros = __reduce_add_sync(all_lanes, c.zeros);
    const std::uint32_t subnormals = __reduce_add_sync(all_lanes, c.subnormals);
    if (lane == 0) {
      store(out[t], {static_cast<std::uint64_t>(plan.rows[t].count), nan, inf, zeros, subnormals,
                     amax, Sums::bits(squares)});
    }
  }
}

/// The others, a block for each.
template <class Sums>
__device__ void join_large(const plan_tables& plan, const chunk_tally* tallies,
                           tensor_statistics* out) {
  using tree = block_tree<Sums, tensor_threads>;
  __shared__ typename tree::scratch scratch;
  __shared__ block_figures<tensor_threads> figures;
  for (std::uint64_t t = blockIdx.x; t < plan.tensors; t += gridDim.x) {
    const std::uint64_t chunks = chunks_of(plan, t);
    if (chunks <= few_chunks) continue;
    joined_figures own = {};
    const chunk_tally* const first = tallies + plan.rows[t].first_chunk;
    const auto sum = tree::sum(chunks, scratch, [&](std::uint64_t i) {
      const chunk_tally c = first[i];
      own.join({0, c.nan, c.inf, c.zeros, c.subnormals, c.amax, 0});
      return Sums::from_bits(c.squares);
    });
    joined_figures all = figures.joined(own);
    if (threadIdx.x == 0) {
      all.count = static_cast<std::uint64_t>(plan.rows[t].count);
      all.squares = Sums::bits(sum);
      store(out[t], all);
    }
    __syncthreads();  // the scratch is used again
  }
}

template <class Sums>
__global__ void __launch_bounds__(tensor_threads)
    tensors_kernel(const plan_tables plan, const chunk_tally* const tallies,
                   tensor_statistics* const out) {
  join_small<Sums>(plan, tallies, out);
  join_large<Sums>(plan, tallies, out);
}

template <class Sums>
__global__ void __launch_bounds__(total_threads)
    total_kernel(const tensor_statistics* const tensors, const std::uint64_t count,
                 inspection* const out) {
  __shared__ total_scratch<Sums> scratch;
  const plan_total total = total_of<Sums>(tensors, count, scratch);
  if (threadIdx.x == 0) {
    store(out->total, total.figures);
    out->first_bad = total.first_bad;
  }
}

template <inspect_counts Counts>
void enqueue_chunks(const plan_tables& plan, plan_shape shape, const inspection_memory& memory,
                    steps by, cudaStream_t stream) {
  const auto launch = [&](auto kernel, auto... more) {
    kernel<<<plan_blocks(plan, kernel), plan_threads, 0, stream>>>(plan, more..., memory.tallies,
                                                                   memory.exponents);
    check(cudaPeekAtLastError(), "inspect kernel");
  };
  if (by == steps::definition) return launch(any_chunks_kernel<integer_sums, Counts>, true);
  launch(regular_chunks_kernel<Counts>);
  if (shape == plan_shape::any) launch(any_chunks_kernel<hardware_sums, Counts>, false);
}

template <class Sums>
void enqueue_tensors(const plan_tables& plan, const inspection_memory& memory,
                     cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(std::min<std::uint64_t>(plan.tensors, 1024));
  tensors_kernel<Sums><<<blocks, tensor_threads, 0, stream>>>(plan, memory.tallies, memory.tensors);
  check(cudaPeekAtLastError(), "inspect kernel of the tensors");
}

std::size_t padded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

std::size_t inspection_bytes(const plan_tables& plan) {
  return padded(plan.chunks * sizeof(chunk_tally)) +
         padded(plan.tensors * sizeof(tensor_statistics)) + padded(sizeof(inspection)) +
         padded(numerics::exponent_buckets * sizeof(std::uint64_t));
}

inspection_memory inspection_in(std::byte* memory, const plan_tables& plan) {
  inspection_memory m = {};
  m.tallies = reinterpret_cast<chunk_tally*>(memory);
  memory += padded(plan.chunks * sizeof(chunk_tally));
  m.tensors = reinterpret_cast<tensor_statistics*>(memory);
  memory += padded(plan.tensors * sizeof(tensor_statistics));
  m.all = reinterpret_cast<inspection*>(memory);
  memory += padded(sizeof(inspection));
  m.exponents = reinterpret_cast<std::uint64_t*>(memory);
  return m;
}

plan_shape shape_of(std::span<const plan_row> rows) {
  return std::ranges::all_of(rows, is_regular) ? plan_shape::regular : plan_shape::any;
}

void enqueue_tensor_statistics(const plan_tables& plan, plan_shape shape, inspect_counts counts,
                               const inspection_memory& memory, steps by, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (plan.tensors == 0) return;
  const bool distribution = counts == inspect_counts::distribution;
  if (distribution) {
    check(cudaMemsetAsync(memory.exponents, 0, numerics::exponent_buckets * sizeof(std::uint64_t),
                          on),
          "clear the exponents");
  }
  if (plan.chunks != 0 && distribution) {
    enqueue_chunks<inspect_counts::distribution>(plan, shape, memory, by, on);
  } else if (plan.chunks != 0) {
    enqueue_chunks<inspect_counts::nonfinite>(plan, shape, memory, by, on);
  }
  if (by == steps::hardware) return enqueue_tensors<hardware_sums>(plan, memory, on);
  enqueue_tensors<integer_sums>(plan, memory, on);
}

void enqueue_total(const plan_tables& plan, const inspection_memory& memory, steps by,
                   void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (by == steps::hardware) {
    total_kernel<hardware_sums>
        <<<1, total_threads, 0, on>>>(memory.tensors, plan.tensors, memory.all);
  } else {
    total_kernel<integer_sums>
        <<<1, total_threads, 0, on>>>(memory.tensors, plan.tensors, memory.all);
  }
  check(cudaPeekAtLastError(), "inspect kernel of the total");
}

}  // namespace samebits::cuda
