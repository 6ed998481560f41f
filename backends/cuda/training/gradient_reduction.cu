// Kernels of a gradient reduction. One warp per chunk of a range of the list, chunk after chunk.
#include "backends/cuda/training/gradient_reduction.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>

#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/convert/convert_ops.cuh"
#include "backends/cuda/instructions/warp.cuh"
#include "backends/cuda/tensor_list/list_launch.cuh"
#include "backends/cuda/training/gradient_reduction_steps.cuh"
#include "backends/dispatch/visit.hpp"
#include "numerics/sums/sum_tree.hpp"

namespace samebits::cuda {
namespace {

using numerics::list_row;
using numerics::tile_scale;

/// Calls work(row, tensor, start, first, last, lane) with all lanes of a warp, for each chunk of
/// the range. [first, last) are the chunk's elements in the tensor; `start` is the position of the
/// tensor in the list.
template <class Work>
__device__ __forceinline__ void for_each_part(const reduction_list& list, const list_range& range,
                                              const Work& work) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (list_threads / 32);
  const std::uint64_t warp = (std::uint64_t{blockIdx.x} * list_threads + threadIdx.x) / 32;
  for (std::uint64_t chunk = range.first_chunk + warp; chunk < range.end_chunk; chunk += warps) {
    const std::uint32_t tensor = list.tables.row_of_chunk[chunk];
    const list_row row = list.tables.rows[tensor];
    const numerics::list_chunk c = numerics::chunk_of(row, tensor, chunk);
    const std::int64_t start = list.starts[tensor];
    const std::int64_t begin = range.begin - start, end = range.end - start;
    const std::int64_t chunk_end = c.first + c.count;
    work(row, tensor, start, begin > c.first ? begin : c.first, end < chunk_end ? end : chunk_end,
         lane);
  }
}

/// Loads and stores elements of a tensor whose codes have `Bytes` bytes, of any strides and
/// alignment.
template <int Bytes>
struct elements {
  using code_type = typename samebits::detail::storage_of<Bytes * 8>::type;
  const list_row& row;
  bool aligned = reinterpret_cast<std::uintptr_t>(row.data) % Bytes == 0;

  __device__ __forceinline__ std::byte* at(std::int64_t i) const {
    return static_cast<std::byte*>(row.data) + numerics::offset_of(row, i) * Bytes;
  }
  __device__ __forceinline__ std::uint32_t load(std::int64_t i) const {
    const std::byte* const p = at(i);
    if (aligned) return *reinterpret_cast<const code_type*>(p);
    return static_cast<std::uint32_t>(load_code(p, Bytes));
  }
  __device__ __forceinline__ void store(std::int64_t i, std::uint32_t code) const {
    std::byte* const p = at(i);
    if (aligned) {
      *reinterpret_cast<code_type*>(p) = static_cast<code_type>(code);
    } else {
      store_code(p, Bytes, code);
    }
  }
};

/// Loads code i of dense codes that are aligned to their size.
template <int Bytes>
__device__ __forceinline__ std::uint32_t load_dense(const std::byte* p, std::int64_t i) {
  using code_type = typename samebits::detail::storage_of<Bytes * 8>::type;
  return reinterpret_cast<const code_type*>(p)[i];
}
/// Stores code i of dense codes that are aligned to their size.
template <int Bytes>
__device__ __forceinline__ void store_dense(std::byte* p, std::int64_t i, std::uint32_t code) {
  using code_type = typename samebits::detail::storage_of<Bytes * 8>::type;
  reinterpret_cast<code_type*>(p)[i] = static_cast<code_type>(code);
}

// --- largest magnitudes and scales

/// The amax of elements [first, last) of a tensor over finite elements. All lanes must call.
template <class Arithmetic, format_id Own>
__device__ __forceinline__ numerics::tile_amax amax_of(const list_row& row, std::int64_t first,
                                                       std::int64_t last, unsigned lane) {
  using steps = element_steps<Arithmetic>;
  constexpr format_spec own = spec_of(Own);
  const elements<own.storage_bits / 8> codes{row};
  numerics::tile_amax amax = numerics::no_amax;
#pragma unroll 4
  for (std::int64_t i = first + lane; i < last; i += 32) {
    const std::uint32_t x = steps::template value<Own>(codes.load(i));
    amax = numerics::combined(amax, numerics::amax_contribution(nonfinite::skip_nonfinite, x));
  }
  return __reduce_max_sync(all_lanes, amax);
}

/// Updates words[tensor] with the amax of each chunk.
template <class Arithmetic>
__global__ void __launch_bounds__(list_threads, list_residents)
    amax_kernel(const reduction_list list, const list_range range, std::uint32_t* const words) {
  for_each_part(list, range,
                [&](const list_row& row, std::uint32_t tensor, std::int64_t, std::int64_t first,
                    std::int64_t last, unsigned lane) {
                  numerics::tile_amax amax = numerics::no_amax;
                  switch (row.format) {
                    case format_id::fp32:
                      amax = amax_of<Arithmetic, format_id::fp32>(row, first, last, lane);
                      break;
                    case format_id::fp16:
                      amax = amax_of<Arithmetic, format_id::fp16>(row, first, last, lane);
                      break;
                    default: amax = amax_of<Arithmetic, format_id::bf16>(row, first, last, lane);
                  }
                  if (lane == 0) atomicMax(words + tensor, numerics::amax_to_word(amax));
                });
}

/// The scale of each tensor from its amax over all ranks. One thread per tensor.
__global__ void __launch_bounds__(list_threads)
    scales_kernel(const numerics::communication_settings settings, const std::uint32_t* const words,
                  const std::uint64_t tensors, tile_scale* const scales) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * list_threads;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * list_threads + threadIdx.x; i < tensors;
       i += step) {
    scales[i] = numerics::shared_scale(settings, numerics::amax_from_word(words[i]));
  }
}

// --- contributions, sums and results

/// reduction_task: the parameters of the reduction that kernels need.
struct reduction_task {
  numerics::communication_settings settings;
  random_source random;
  std::uint64_t index;   ///< random index of the element at position 0
  std::uint32_t factor;  ///< binary32 bits
  int ranks;
};

/// The scale of a tensor; 1 if the communication dtype has no scale.
__device__ __forceinline__ tile_scale scale_of(const reduction_list& list, std::uint32_t tensor) {
  if (list.scales == nullptr) return {numerics::binary32::one, numerics::binary32::one};
  return list.scales[tensor];
}

/// Converts the elements of a range to the communication dtype.
template <class Arithmetic, format_id Own, format_id Communication, rounding Round>
__global__ void __launch_bounds__(list_threads, list_residents)
    contributions_kernel(const reduction_list list, const list_range range,
                         const reduction_task task, std::byte* const communication) {
  using steps = element_steps<Arithmetic>;
  constexpr format_spec own = spec_of(Own);
  constexpr format_spec sent = spec_of(Communication);
  for_each_part(
      list, range,
      [&](const list_row& row, std::uint32_t tensor, std::int64_t start, std::int64_t first,
          std::int64_t last, unsigned lane) {
        const tile_scale scale = scale_of(list, tensor);
        const elements<own.storage_bits / 8> codes{row};
        std::byte* const out = communication + (start - range.begin) * (sent.storage_bits / 8);
#pragma unroll(Round == rounding::stochastic ? 1 : 4)
        for (std::int64_t i = first + lane; i < last; i += 32) {
          std::uint32_t dither = 0;
          if constexpr (Round == rounding::stochastic) {
            dither = dither_of(task.random, task.index + static_cast<std::uint64_t>(start + i));
          }
          const std::uint32_t x = steps::template value<Own>(codes.load(i));
          store_dense<sent.storage_bits / 8>(out, i,
                                             steps::template contribution<Communication, Round>(
                                                 task.settings.rule, scale, x, dither));
        }
      });
}

/// Sums the contributions of all ranks, in rank order, and rounds the sums to the tensors' format.
template <class Arithmetic, format_id Own, format_id Communication>
__global__ void __launch_bounds__(list_threads, list_residents)
    sums_kernel(const reduction_list list, const list_range range, const reduction_task task,
                const std::byte* const communication, const std::int64_t share,
                std::byte* const sums) {
  using steps = element_steps<Arithmetic>;
  constexpr int communication_bytes = spec_of(Communication).storage_bits / 8;
  constexpr int own_bytes = spec_of(Own).storage_bits / 8;
  for_each_part(list, range,
                [&](const list_row&, std::uint32_t tensor, std::int64_t start, std::int64_t first,
                    std::int64_t last, unsigned lane) {
                  const tile_scale scale = scale_of(list, tensor);
                  const std::int64_t before = start - range.begin;
                  for (std::int64_t i = before + first + lane; i < before + last; i += 32) {
                    std::uint32_t total = steps::template value<Communication>(
                        load_dense<communication_bytes>(communication, i));
#pragma unroll 4
                    for (int rank = 1; rank < task.ranks; ++rank) {
                      const std::uint32_t code =
                          load_dense<communication_bytes>(communication, rank * share + i);
                      total = steps::sum(total, steps::template value<Communication>(code));
                    }
                    store_dense<own_bytes>(
                        sums, i,
                        steps::template result<Communication, Own>(scale, total, task.factor));
                  }
                });
}

/// Copies dense codes to the elements of a range.
template <int Bytes>
__global__ void __launch_bounds__(list_threads, list_residents)
    results_kernel(const reduction_list list, const list_range range,
                   const std::byte* const results) {
  for_each_part(list, range,
                [&](const list_row& row, std::uint32_t, std::int64_t start, std::int64_t first,
                    std::int64_t last, unsigned lane) {
                  const elements<Bytes> codes{row};
                  const std::int64_t before = start - range.begin;
#pragma unroll 4
                  for (std::int64_t i = first + lane; i < last; i += 32) {
                    codes.store(i, load_dense<Bytes>(results, before + i));
                  }
                });
}

// --- launches

/// Launches a kernel over a non-empty range.
template <class Kernel, class... Arguments>
void launch(Kernel kernel, const reduction_list& list, const list_range& range, const char* what,
            void* stream, const Arguments&... arguments) {
  numerics::tensor_tables part = list.tables;
  part.chunks = range.end_chunk - range.first_chunk;
  launch_kernel(what, kernel, list_blocks(part, kernel), list_threads, 0,
                static_cast<cudaStream_t>(stream), list, range, arguments...);
}

reduction_task task_of(const reduction_rule& rule) {
  const gradient_reduction& how = rule.how;
  return {{spec_of(how.communication), how.scale, how.rounding},
          source_of(how.random),
          how.random.offset,
          std::bit_cast<std::uint32_t>(how.factor),
          rule.ranks};
}

}  // namespace

void enqueue_amaxes(const reduction_list& list, std::uint32_t* words, arithmetic by, void* stream) {
  const list_range all = {0, std::int64_t{1} << 62, 0, list.tables.chunks};
  with_arithmetic(by, [&](auto policy) {
    launch(amax_kernel<decltype(policy)>, list, all, "kernel of the largest magnitudes", stream,
           words);
  });
}

void enqueue_scales(const reduction_list& list, const reduction_rule& rule,
                    const std::uint32_t* words, void* stream) {
  const std::uint64_t blocks = (list.tables.tensors + list_threads - 1) / list_threads;
  launch_kernel("kernel of the scales", scales_kernel,
                static_cast<unsigned>(std::min<std::uint64_t>(blocks, 1024)), list_threads, 0,
                static_cast<cudaStream_t>(stream), task_of(rule).settings, words,
                list.tables.tensors, list.scales);
}

void enqueue_contributions(const reduction_list& list, const list_range& range,
                           const reduction_rule& rule, format_id own, std::byte* communication,
                           void* stream) {
  const reduction_task task = task_of(rule);
  with_arithmetic(rule.by, [&](auto policy) {
    backends::visit_quantized(own, [&]<format_id Own>() {
      backends::visit_list_format(rule.how.communication, [&](auto sent) {
        using Arithmetic = decltype(policy);
        constexpr format_id from = Own, to = decltype(sent)::id;
        const auto kernel =
            rule.how.rounding == rounding::stochastic
                ? contributions_kernel<Arithmetic, from, to, rounding::stochastic>
                : contributions_kernel<Arithmetic, from, to, rounding::nearest_even>;
        launch(kernel, list, range, "kernel of contributions", stream, task, communication);
      });
    });
  });
}

void enqueue_sums(const reduction_list& list, const list_range& range, const reduction_rule& rule,
                  format_id own, const std::byte* communication, std::int64_t share,
                  std::byte* sums, void* stream) {
  const reduction_task task = task_of(rule);
  with_arithmetic(rule.by, [&](auto policy) {
    backends::visit_quantized(own, [&]<format_id Own>() {
      backends::visit_list_format(rule.how.communication, [&](auto sent) {
        launch(sums_kernel<decltype(policy), Own, decltype(sent)::id>, list, range,
               "kernel of sums over ranks", stream, task, communication, share, sums);
      });
    });
  });
}

void enqueue_results(const reduction_list& list, const list_range& range, format_id own,
                     const std::byte* results, void* stream) {
  const auto kernel = storage_bytes(own) == 4 ? results_kernel<4> : results_kernel<2>;
  launch(kernel, list, range, "kernel of results", stream, results);
}

}  // namespace samebits::cuda
