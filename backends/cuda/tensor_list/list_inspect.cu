// Statistics of a list of tensors on CUDA: of each chunk of up to 4096 elements, of each tensor and
// of the list. The kernels run in this order:
//
//   dense_chunks_kernel   cuda-native: one warp per chunk of dense, 16-byte aligned tensors
//   any_chunks_kernel       cuda-native: one warp per chunk of all other tensors, if there are any
//                           cuda-emulated: one warp per chunk of all tensors
//   tensors_kernel          one warp per tensor of up to 32 chunks; one block per span of a larger
//                           tensor, up to 1024 chunks
//   total_kernel            one block: the statistics of the list
//
// The two chunk kernels write the statistics of each chunk to partial_statistics[chunk].
#include <algorithm>

#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/common/sum_tree.cuh"
#include "backends/cuda/tensor_list/list.hpp"
#include "backends/cuda/tensor_list/list_inspect.cuh"
#include "backends/cuda/tensor_list/list_launch.cuh"
#include "backends/cuda/tensor_list/list_tensors.cuh"
#include "backends/cuda/tensor_list/list_total.cuh"

namespace samebits::cuda {

namespace {

using numerics::tensor_tables;

/// Histogram of exponents of one block, in shared memory until the block ends. 32 bits are enough,
/// because list_blocks() bounds the elements that a block reads.
template <inspect_counts Counts>
struct block_exponents {
  static constexpr bool with_distribution = Counts == inspect_counts::distribution;
  unsigned buckets[with_distribution ? numerics::exponent_buckets : 1];

  __device__ __forceinline__ void clear() {
    if constexpr (with_distribution) {
      static_assert(list_threads == numerics::exponent_buckets);
      buckets[threadIdx.x] = 0;
      __syncthreads();
    }
  }
  /// Adds the block's histogram to `exponents`. All threads of the block must call.
  __device__ __forceinline__ void add_to(std::uint64_t* exponents) {
    if constexpr (with_distribution) {
      __syncthreads();
      const unsigned long long seen = buckets[threadIdx.x];
      if (seen != 0) {
        atomicAdd(reinterpret_cast<unsigned long long*>(&exponents[threadIdx.x]), seen);
      }
    }
  }
};

/// The list_layout of dense, aligned tensors that all have format f.
SAMEBITS_HD constexpr list_layout shape_of(format_id f) {
  return f == format_id::fp32   ? list_layout::fp32
         : f == format_id::fp16 ? list_layout::fp16
                                : list_layout::bf16;
}
/// Whether a tensor has format f; a constant if all tensors share one format.
__device__ __forceinline__ bool has_format(list_layout shape, format_id f, const list_row& row) {
  if (shape == list_layout::any || shape == list_layout::mixed) return row.format == f;
  return shape == shape_of(f);
}

/// Threads of a block of dense_chunks_kernel.
template <inspect_counts Counts>
inline constexpr int dense_threads =
    Counts == inspect_counts::nonfinite ? chunk_threads : list_threads;
/// Minimum resident blocks per multiprocessor.
template <list_layout Shape, inspect_counts Counts>
inline constexpr int dense_residents = Counts == inspect_counts::distribution ? list_residents
                                       : Shape == list_layout::fp32           ? 8
                                                                              : 6;

/// Statistics of the chunks of dense, aligned tensors, by the hardware. One warp per chunk.
///
/// Shape is a format if all tensors share it. A kernel for all three formats needs registers in
/// which a kernel of one 16-bit format holds elements. Without a histogram a block keeps nothing in
/// shared memory, so each warp works on one chunk; else warps work on chunk after chunk.
template <list_layout Shape, inspect_counts Counts>
__global__ void __launch_bounds__(dense_threads<Counts>, dense_residents<Shape, Counts>)
    dense_chunks_kernel(const tensor_tables list, chunk_statistics* const partial_statistics,
                        std::uint32_t* const arrived, std::uint64_t* const exponents) {
  __shared__ block_exponents<Counts> counts;
  counts.clear();
  const auto inspect = [&](const list_row& row, const list_chunk& c, std::uint64_t chunk,
                           unsigned lane) {
    if (!is_dense_aligned(row)) return;
    if (lane == 0 && chunk == row.first_chunk) arrived[c.tensor] = 0;
    const auto* const data = static_cast<const std::byte*>(row.data);
    const auto count = static_cast<int>(c.count);
    const auto inspected = [&](auto f) {
      constexpr int bytes = spec_of(f.value).storage_bits / 8;
      return inspected_dense<f.value, Counts>(data + c.first * bytes, count, lane, counts.buckets);
    };
    chunk_statistics statistics;
    if (has_format(Shape, format_id::fp32, row)) {
      statistics = inspected(fixed<format_id::fp32>{});
    } else if (has_format(Shape, format_id::fp16, row)) {
      statistics = inspected(fixed<format_id::fp16>{});
    } else {
      statistics = inspected(fixed<format_id::bf16>{});
    }
    if (lane == 0) partial_statistics[chunk] = statistics;
  };
  if constexpr (Counts == inspect_counts::nonfinite) {
    for_own_chunk(list, inspect);
  } else {
    for_each_chunk(list, inspect);
  }
  counts.add_to(exponents);
}

/// Statistics of the chunks of tensors that are not dense and aligned, or of all tensors. One warp
/// per chunk, chunk after chunk.
template <class Arithmetic, inspect_counts Counts>
__global__ void __launch_bounds__(list_threads)
    any_chunks_kernel(const tensor_tables list, const bool all,
                      chunk_statistics* const partial_statistics, std::uint32_t* const arrived,
                      std::uint64_t* const exponents) {
  __shared__ block_exponents<Counts> counts;
  counts.clear();
  for_each_chunk(list,
                 [&](const list_row& row, const list_chunk& c, std::uint64_t chunk, unsigned lane) {
                   if (!all && is_dense_aligned(row)) return;
                   if (lane == 0 && chunk == row.first_chunk) arrived[c.tensor] = 0;
                   const chunk_statistics statistics =
                       inspected_any<Arithmetic, Counts>(row, c, lane, counts.buckets);
                   if (lane == 0) partial_statistics[chunk] = statistics;
                 });
  counts.add_to(exponents);
}

/// Statistics of the list, combined from its tensors. One block.
template <class Arithmetic>
__global__ void __launch_bounds__(total_threads)
    total_kernel(const tensor_statistics* const tensors, const std::uint64_t count,
                 inspection* const out) {
  __shared__ total_scratch<Arithmetic> scratch;
  const list_total total = total_of<Arithmetic>(tensors, count, scratch);
  if (threadIdx.x == 0) {
    store(out->total, total.totals);
    out->first_bad = total.first_bad;
  }
}

template <inspect_counts Counts>
void enqueue_chunks(const tensor_tables& list, list_layout shape, const inspection_memory& memory,
                    arithmetic by, cudaStream_t stream) {
  const auto launch_any = [&](auto kernel, bool all) {
    launch_kernel("inspect kernel", kernel, list_blocks(list, kernel), list_threads, 0, stream,
                  list, all, memory.partial_statistics, memory.arrived, memory.exponents);
  };
  if (by == arithmetic::by_definition)
    return launch_any(any_chunks_kernel<numerics::by_definition, Counts>, true);
  const auto launch = [&](auto kernel) {
    const bool own = Counts == inspect_counts::nonfinite;
    launch_kernel("inspect kernel", kernel,
                  own ? blocks_of_chunks(list) : list_blocks(list, kernel), dense_threads<Counts>,
                  0, stream, list, memory.partial_statistics, memory.arrived, memory.exponents);
  };
  switch (shape) {
    case list_layout::fp32: return launch(dense_chunks_kernel<list_layout::fp32, Counts>);
    case list_layout::fp16: return launch(dense_chunks_kernel<list_layout::fp16, Counts>);
    case list_layout::bf16: return launch(dense_chunks_kernel<list_layout::bf16, Counts>);
    default: launch(dense_chunks_kernel<list_layout::mixed, Counts>);
  }
  if (shape == list_layout::any) launch_any(any_chunks_kernel<hardware, Counts>, false);
}

template <class Arithmetic>
void enqueue_tensors(const tensor_tables& list, const inspection_memory& memory,
                     cudaStream_t stream) {
  constexpr std::uint64_t small_of_block = tensor_threads / 32, max_blocks = 1024;
  const std::uint64_t wanted =
      std::max(windows_of(list), (list.tensors + small_of_block - 1) / small_of_block);
  const auto blocks = static_cast<unsigned>(std::min(wanted, max_blocks));
  launch_kernel("inspect kernel of the tensors", tensors_kernel<Arithmetic>, blocks, tensor_threads,
                0, stream, list, memory);
}

}  // namespace

inspection_memory inspection_in(memory_layout& layout, const tensor_tables& list) {
  return {layout.take<chunk_statistics>(list.chunks),
          layout.take<combined_statistics>(span_count(list)),
          layout.take<std::uint32_t>(list.tensors),
          layout.take<tensor_statistics>(list.tensors),
          layout.take<inspection>(1),
          layout.take<std::uint64_t>(numerics::exponent_buckets)};
}

list_layout shape_of(std::span<const list_row> rows) {
  if (!std::ranges::all_of(rows, is_dense_aligned)) return list_layout::any;
  if (rows.empty()) return list_layout::mixed;
  const format_id f = rows[0].format;
  const bool alike = std::ranges::all_of(rows, [&](const list_row& r) { return r.format == f; });
  return alike ? shape_of(f) : list_layout::mixed;
}

void enqueue_chunk_statistics(const tensor_tables& list, list_layout shape, inspect_counts counts,
                              const inspection_memory& memory, arithmetic by, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const bool distribution = counts == inspect_counts::distribution;
  if (distribution) {
    check(cudaMemsetAsync(memory.exponents, 0, numerics::exponent_buckets * sizeof(std::uint64_t),
                          on),
          "clear the exponents");
  }
  if (list.chunks == 0) return;
  (distribution ? enqueue_chunks<inspect_counts::distribution>
                : enqueue_chunks<inspect_counts::nonfinite>)(list, shape, memory, by, on);
}

void enqueue_tensor_statistics(const tensor_tables& list, list_layout shape, inspect_counts counts,
                               const inspection_memory& memory, arithmetic by, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (list.tensors == 0) return;
  enqueue_chunk_statistics(list, shape, counts, memory, by, stream);
  with_arithmetic(by, [&](auto policy) { enqueue_tensors<decltype(policy)>(list, memory, on); });
}

void enqueue_total(const tensor_tables& list, const inspection_memory& memory, arithmetic by,
                   void* stream) {
  with_arithmetic(by, [&](auto policy) {
    launch_kernel("inspect kernel of the total", total_kernel<decltype(policy)>, 1, total_threads,
                  0, static_cast<cudaStream_t>(stream), memory.tensors, list.tensors, memory.all);
  });
}

}  // namespace samebits::cuda
