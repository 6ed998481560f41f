// Kernels of a gradient reduction, and their steps for one element with formats as compile-time
// constants. One warp per chunk of a range of the list, chunk after chunk.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/convert/convert_ops.cuh"
#include "backends/cuda/instructions/fp8.cuh"
#include "backends/cuda/instructions/halves.cuh"
#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/instructions/warp.cuh"
#include "backends/cuda/tensor_list/list_launch.cuh"
#include "numerics/sums/rank_sum.hpp"
#include "numerics/sums/sum_tree.hpp"
#include "numerics/tensor_list/list.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/core/scaling.hpp"

namespace samebits::cuda {

/// The steps by an Arithmetic policy (numerics/sums/rank_sum.hpp).
template <class Arithmetic>
struct element_steps {
  /// The value of a code as binary32 bits.
  template <format_id F>
  __device__ __forceinline__ static std::uint32_t value(std::uint32_t code) {
    constexpr format_spec f = spec_of(F);
    return numerics::decode<std::uint32_t>(f, code);
  }
  /// The code that a rank sends for an element x.
  template <format_id Communication, rounding Round>
  __device__ __forceinline__ static std::uint32_t contribution(scale_rule rule,
                                                               const numerics::tile_scale& scale,
                                                               std::uint32_t x,
                                                               std::uint32_t dither) {
    constexpr format_spec communication = spec_of(Communication);
    return numerics::contribution<Arithmetic>({communication, rule, Round}, scale, x, dither);
  }
  __device__ __forceinline__ static std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
    return Arithmetic::sum(a, b);
  }
  template <format_id Communication, format_id Own>
  __device__ __forceinline__ static std::uint32_t result(const numerics::tile_scale& scale,
                                                         std::uint32_t total,
                                                         std::uint32_t factor) {
    constexpr format_spec communication = spec_of(Communication);
    constexpr format_spec own = spec_of(Own);
    return numerics::reduced<Arithmetic>({communication}, scale, own, total, factor);
  }
};

/// The steps by the GPU's instructions. Conversions use instructions too, where proved equal. A NaN
/// may keep its payload until it is rounded.
template <>
struct element_steps<hardware> {
  template <format_id F>
  __device__ __forceinline__ static std::uint32_t value(std::uint32_t code) {
    if constexpr (spec_of(F).storage_bits == 8) {
      return __float_as_uint(fp8_values<F>(static_cast<std::uint16_t>(code)).x);
    } else {
      return widen<F>(code);
    }
  }

  template <format_id Communication, rounding Round>
  __device__ __forceinline__ static std::uint32_t contribution(scale_rule rule,
                                                               const numerics::tile_scale& scale,
                                                               std::uint32_t x,
                                                               std::uint32_t dither) {
    constexpr format_spec communication = spec_of(Communication);
    if constexpr (Round == rounding::stochastic || communication.storage_bits == 32) {
      return numerics::contribution<hardware>({communication, rule, Round}, scale, x, dither);
    } else if constexpr (communication.storage_bits == 16) {
      return half_pair<Communication, false>(x, x) & 0xFFFFu;
    } else {
      const std::uint32_t y = numerics::scaled<hardware>(rule, scale, x);
      return unsaturated<Communication>(y, fp8_pair<Communication>(y, y) & 0xFFu);
    }
  }

  __device__ __forceinline__ static std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
    return hardware::sum(a, b);
  }

  template <format_id Communication, format_id Own>
  __device__ __forceinline__ static std::uint32_t result(const numerics::tile_scale& scale,
                                                         std::uint32_t total,
                                                         std::uint32_t factor) {
    std::uint32_t t = total;
    if constexpr (spec_of(Communication).storage_bits == 8)
      t = hardware::product(t, scale.dequantization_scale);
    t = hardware::product(t, factor);  // NaN is canonical from here on
    if constexpr (spec_of(Own).storage_bits == 32) {
      return t;
    } else {
      return half_pair<Own, false>(t, t) & 0xFFFFu;
    }
  }
};

using numerics::list_row;
using numerics::tile_scale;

/// reduction_list: a list of tensors as one sequence of elements; pointers are to device memory.
struct reduction_list {
  numerics::tensor_tables tables;
  const std::int64_t* starts;  ///< [tensors]: position of the tensor's first element
  tile_scale* scales;          ///< [tensors]; null if the communication dtype has no scale
};

/// Elements [begin, end) of the list, all of one format, and the chunks that hold them.
struct list_range {
  std::int64_t begin;
  std::int64_t end;
  std::uint64_t first_chunk;
  std::uint64_t end_chunk;
};

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
static __global__ void __launch_bounds__(list_threads)
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

}  // namespace samebits::cuda
