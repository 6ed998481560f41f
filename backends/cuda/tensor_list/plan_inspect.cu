// Statistics of a list of tensors on CUDA: of each chunk of up to 4096 elements, of each tensor and
// of the list. The kernels run in this order:
//
//   regular_chunks_kernel   cuda-native: one warp per chunk of dense, 16-byte aligned tensors
//   any_chunks_kernel       cuda-native: one warp per chunk of all other tensors, if there are any
//                           cuda-emulated: one warp per chunk of all tensors
//   tensors_kernel          one warp per tensor of up to 32 chunks; one block per span of a larger
//                           tensor, up to 1024 chunks
//   total_kernel            one block: the statistics of the list
//
// The two chunk kernels write the statistics of each chunk to tallies[chunk].
#include <algorithm>
#include <type_traits>

#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/common/sum_tree.cuh"
#include "backends/cuda/tensor_list/plan.hpp"
#include "backends/cuda/tensor_list/plan_inspect.cuh"
#include "backends/cuda/tensor_list/plan_launch.cuh"
#include "backends/cuda/tensor_list/plan_tensors.cuh"
#include "backends/cuda/tensor_list/plan_total.cuh"

namespace samebits::cuda {

namespace {

using numerics::plan_tables;

/// Histogram of exponents of one block, in shared memory until the block ends. 32 bits are enough,
/// because plan_blocks() bounds the elements that a block reads.
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
  /// Adds the block's histogram to `exponents`. All threads of the block must call.
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

/// The plan_shape of dense, aligned tensors that all have format f.
SAMEBITS_HD constexpr plan_shape shape_of(format_id f) {
  return f == format_id::fp32   ? plan_shape::fp32
         : f == format_id::fp16 ? plan_shape::fp16
                                : plan_shape::bf16;
}
/// Whether a tensor has format f; a constant if all tensors share one format.
__device__ __forceinline__ bool has_format(plan_shape shape, format_id f, const plan_row& row) {
  if (shape == plan_shape::any || shape == plan_shape::mixed) return row.format == f;
  return shape == shape_of(f);
}

/// Threads of a block of regular_chunks_kernel.
template <inspect_counts Counts>
inline constexpr int regular_threads =
    Counts == inspect_counts::nonfinite ? chunk_threads : plan_threads;
/// Minimum resident blocks per multiprocessor.
template <plan_shape Shape, inspect_counts Counts>
inline constexpr int regular_residents = Counts == inspect_counts::distribution ? plan_residents
                                         : Shape == plan_shape::fp32            ? 8
                                                                                : 6;

/// Statistics of the chunks of dense, aligned tensors, by the hardware. One warp per chunk.
///
/// Shape is a format if all tensors share it. A kernel for all three formats needs registers in
/// which a kernel of one 16-bit format holds elements. Without a histogram a block keeps nothing in
/// shared memory, so each warp works on one chunk; else warps work on chunk after chunk.
template <plan_shape Shape, inspect_counts Counts>
__global__ void __launch_bounds__(regular_threads<Counts>, regular_residents<Shape, Counts>)
    regular_chunks_kernel(const plan_tables plan, chunk_tally* const tallies,
                          std::uint32_t* const arrived, std::uint64_t* const exponents) {
  __shared__ block_exponents<Counts> counts;
  counts.clear();
  const auto inspect = [&](const plan_row& row, const plan_chunk& c, std::uint64_t chunk,
                           unsigned lane) {
    if (!is_regular(row)) return;
    if (lane == 0 && chunk == row.first_chunk) arrived[c.tensor] = 0;
    const auto* const data = static_cast<const std::byte*>(row.data);
    const auto count = static_cast<int>(c.count);
    const auto inspected = [&](auto f) {
      constexpr int bytes = spec_of(f.value).storage_bits / 8;
      return inspected_dense<f.value, Counts>(data + c.first * bytes, count, lane, counts.buckets);
    };
    chunk_tally tally;
    if (has_format(Shape, format_id::fp32, row)) {
      tally = inspected(fixed<format_id::fp32>{});
    } else if (has_format(Shape, format_id::fp16, row)) {
      tally = inspected(fixed<format_id::fp16>{});
    } else {
      tally = inspected(fixed<format_id::bf16>{});
    }
    if (lane == 0) tallies[chunk] = tally;
  };
  if constexpr (Counts == inspect_counts::nonfinite) {
    for_own_chunk(plan, inspect);
  } else {
    for_each_chunk(plan, inspect);
  }
  counts.add_to(exponents);
}

/// Statistics of the chunks of tensors that are not dense and aligned, or of all tensors. One warp
/// per chunk, chunk after chunk.
template <class Arithmetic, inspect_counts Counts>
__global__ void __launch_bounds__(plan_threads)
    any_chunks_kernel(const plan_tables plan, const bool all, chunk_tally* const tallies,
                      std::uint32_t* const arrived, std::uint64_t* const exponents) {
  __shared__ block_exponents<Counts> counts;
  counts.clear();
  for_each_chunk(
      plan, [&](const plan_row& row, const plan_chunk& c, std::uint64_t chunk, unsigned lane) {
        if (!all && is_regular(row)) return;
        if (lane == 0 && chunk == row.first_chunk) arrived[c.tensor] = 0;
        const chunk_tally tally = inspected_any<Arithmetic, Counts>(row, c, lane, counts.buckets);
        if (lane == 0) tallies[chunk] = tally;
      });
  counts.add_to(exponents);
}

/// Statistics of the list, combined from its tensors. One block.
template <class Arithmetic>
__global__ void __launch_bounds__(total_threads)
    total_kernel(const tensor_statistics* const tensors, const std::uint64_t count,
                 inspection* const out) {
  __shared__ total_scratch<Arithmetic> scratch;
  const plan_total total = total_of<Arithmetic>(tensors, count, scratch);
  if (threadIdx.x == 0) {
    store(out->total, total.figures);
    out->first_bad = total.first_bad;
  }
}

template <inspect_counts Counts>
void enqueue_chunks(const plan_tables& plan, plan_shape shape, const inspection_memory& memory,
                    arithmetic by, cudaStream_t stream) {
  const auto launch_any = [&](auto kernel, bool all) {
    launch_kernel("inspect kernel", kernel, plan_blocks(plan, kernel), plan_threads, 0, stream,
                  plan, all, memory.tallies, memory.arrived, memory.exponents);
  };
  if (by == arithmetic::by_definition)
    return launch_any(any_chunks_kernel<numerics::by_definition, Counts>, true);
  const auto launch = [&](auto kernel) {
    const bool own = Counts == inspect_counts::nonfinite;
    launch_kernel("inspect kernel", kernel,
                  own ? blocks_of_chunks(plan) : plan_blocks(plan, kernel), regular_threads<Counts>,
                  0, stream, plan, memory.tallies, memory.arrived, memory.exponents);
  };
  switch (shape) {
    case plan_shape::fp32: return launch(regular_chunks_kernel<plan_shape::fp32, Counts>);
    case plan_shape::fp16: return launch(regular_chunks_kernel<plan_shape::fp16, Counts>);
    case plan_shape::bf16: return launch(regular_chunks_kernel<plan_shape::bf16, Counts>);
    default: launch(regular_chunks_kernel<plan_shape::mixed, Counts>);
  }
  if (shape == plan_shape::any) launch_any(any_chunks_kernel<hardware, Counts>, false);
}

template <class Arithmetic>
void enqueue_tensors(const plan_tables& plan, const inspection_memory& memory,
                     cudaStream_t stream) {
  constexpr std::uint64_t small_of_block = tensor_threads / 32, most_blocks = 1024;
  const std::uint64_t wanted =
      std::max(windows_of(plan), (plan.tensors + small_of_block - 1) / small_of_block);
  const auto blocks = static_cast<unsigned>(std::min(wanted, most_blocks));
  launch_kernel("inspect kernel of the tensors", tensors_kernel<Arithmetic>, blocks, tensor_threads,
                0, stream, plan, memory);
}

/// Bytes rounded up to a multiple of 256.
std::size_t padded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

std::size_t inspection_bytes(const plan_tables& plan) {
  return padded(plan.chunks * sizeof(chunk_tally)) +
         padded(piece_places(plan) * sizeof(piece_figures)) +
         padded(plan.tensors * sizeof(std::uint32_t)) +
         padded(plan.tensors * sizeof(tensor_statistics)) + padded(sizeof(inspection)) +
         padded(numerics::exponent_buckets * sizeof(std::uint64_t));
}

inspection_memory inspection_in(std::byte* memory, const plan_tables& plan) {
  inspection_memory m = {};
  m.tallies = reinterpret_cast<chunk_tally*>(memory);
  memory += padded(plan.chunks * sizeof(chunk_tally));
  m.pieces = reinterpret_cast<piece_figures*>(memory);
  memory += padded(piece_places(plan) * sizeof(piece_figures));
  m.arrived = reinterpret_cast<std::uint32_t*>(memory);
  memory += padded(plan.tensors * sizeof(std::uint32_t));
  m.tensors = reinterpret_cast<tensor_statistics*>(memory);
  memory += padded(plan.tensors * sizeof(tensor_statistics));
  m.all = reinterpret_cast<inspection*>(memory);
  memory += padded(sizeof(inspection));
  m.exponents = reinterpret_cast<std::uint64_t*>(memory);
  return m;
}

plan_shape shape_of(std::span<const plan_row> rows) {
  if (!std::ranges::all_of(rows, is_regular)) return plan_shape::any;
  if (rows.empty()) return plan_shape::mixed;
  const format_id f = rows[0].format;
  const bool alike = std::ranges::all_of(rows, [&](const plan_row& r) { return r.format == f; });
  return alike ? shape_of(f) : plan_shape::mixed;
}

void enqueue_chunk_tallies(const plan_tables& plan, plan_shape shape, inspect_counts counts,
                           const inspection_memory& memory, arithmetic by, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
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
}

void enqueue_tensor_statistics(const plan_tables& plan, plan_shape shape, inspect_counts counts,
                               const inspection_memory& memory, arithmetic by, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (plan.tensors == 0) return;
  enqueue_chunk_tallies(plan, shape, counts, memory, by, stream);
  with_arithmetic(by, [&](auto policy) { enqueue_tensors<decltype(policy)>(plan, memory, on); });
}

void enqueue_total(const plan_tables& plan, const inspection_memory& memory, arithmetic by,
                   void* stream) {
  with_arithmetic(by, [&](auto policy) {
    launch_kernel("inspect kernel of the total", total_kernel<decltype(policy)>, 1, total_threads,
                  0, static_cast<cudaStream_t>(stream), memory.tensors, plan.tensors, memory.all);
  });
}

}  // namespace samebits::cuda
