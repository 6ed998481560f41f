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

/// Maximum number of chunks of a small tensor, which one warp combines.
constexpr std::uint64_t few_chunks = 32;
/// Threads of a block of tensors_kernel.
constexpr int tensor_threads = 256;
/// Chunks of a span: one block combines the chunks to a partial sum of level 22.
///
/// Span k of a tensor starts k * piece_chunks chunks after the tensor. The list is cut into windows
/// of piece_chunks chunks; a span belongs to the window in which it starts. The number of a span is
/// window + tensor. Neither number decreases from a span to the next one, and at least one of them
/// increases, so all spans have different numbers.
constexpr std::uint64_t piece_chunks = 1024;

/// Windows of a list.
std::uint64_t windows_of(const plan_tables& plan) {
  return (plan.chunks + piece_chunks - 1) / piece_chunks;
}

/// Chunks of a tensor.
__device__ std::uint64_t chunks_of(const plan_tables& plan, std::uint64_t tensor) {
  const std::uint64_t end =
      tensor + 1 < plan.tensors ? plan.rows[tensor + 1].first_chunk : plan.chunks;
  return end - plan.rows[tensor].first_chunk;
}

/// Combines the chunks of each small tensor. One warp per tensor.
template <class Arithmetic>
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

  __device__ large_tensors(const plan_tables& plan, const inspection_memory& memory, shared& s)
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

  const plan_tables& plan_;
  const inspection_memory& memory_;
  shared& s_;
};

/// Statistics of each tensor, combined from its chunks.
template <class Arithmetic>
__global__ void __launch_bounds__(tensor_threads)
    tensors_kernel(const plan_tables plan, const inspection_memory memory) {
  __shared__ typename large_tensors<Arithmetic>::shared shared;
  join_small<Arithmetic>(plan, memory.tallies, memory.tensors);
  large_tensors<Arithmetic>(plan, memory, shared).join();
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

/// Entries of inspection_memory::pieces.
std::uint64_t piece_places(const plan_tables& plan) { return windows_of(plan) + plan.tensors; }

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
