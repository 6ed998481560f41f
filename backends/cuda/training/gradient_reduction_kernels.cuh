// Kernels of a gradient reduction, and their steps for one element. One warp per chunk of a range of
// the list, chunk after chunk.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/convert/convert_ops.cuh"
#include "backends/cuda/instructions/fp8.cuh"
#include "backends/cuda/instructions/halves.cuh"
#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/instructions/warp.cuh"
#include "backends/cuda/tensor_list/list_launch.cuh"
#include "numerics/arithmetic/by_definition.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/sums/rank_sum.hpp"
#include "numerics/sums/sum_tree.hpp"
#include "numerics/tensor_list/list.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/core/scaling.hpp"

namespace samebits::cuda {

/// The steps of one element by the definition. Formats and rounding are known at run time only: one
/// kernel for all.
struct reduction_by_definition {
  format_spec own;  ///< of the tensors
  numerics::communication_settings settings;

  __device__ int own_bytes() const { return own.storage_bits / 8; }
  __device__ int sent_bytes() const { return settings.communication.storage_bits / 8; }
  __device__ rounding round() const { return settings.rounding; }
  /// The steps with stochastic rounding of contributions.
  [[nodiscard]] reduction_by_definition stochastic() const { return *this; }

  /// The value of a code as binary32 bits.
  __device__ std::uint32_t own_value(std::uint32_t code) const {
    return numerics::decode<std::uint32_t>(own, code);
  }
  __device__ std::uint32_t sent_value(std::uint32_t code) const {
    return numerics::decode<std::uint32_t>(settings.communication, code);
  }
  /// The code that a rank sends for an element x.
  __device__ std::uint32_t contribution(const numerics::tile_scale& scale, std::uint32_t x,
                                        std::uint32_t dither) const {
    return numerics::contribution(settings, scale, x, dither);
  }
  __device__ static std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
    return numerics::by_definition::sum(a, b);
  }
  __device__ std::uint32_t result(const numerics::tile_scale& scale, std::uint32_t total,
                                  std::uint32_t factor) const {
    return numerics::reduced(settings, scale, own, total, factor);
  }
};

/// The steps by the GPU's instructions. Conversions use instructions too, where proved equal. A NaN
/// may keep its payload until it is rounded.
template <format_id Own, format_id Communication, rounding Round>
struct reduction_by_hardware {
  scale_rule rule;

  __device__ __forceinline__ static constexpr int own_bytes() {
    return spec_of(Own).storage_bits / 8;
  }
  __device__ __forceinline__ static constexpr int sent_bytes() {
    return spec_of(Communication).storage_bits / 8;
  }
  __device__ __forceinline__ static constexpr rounding round() { return Round; }
  [[nodiscard]] reduction_by_hardware<Own, Communication, rounding::stochastic> stochastic() const {
    return {rule};
  }

  __device__ __forceinline__ static std::uint32_t own_value(std::uint32_t code) {
    return widen<Own>(code);
  }
  __device__ __forceinline__ static std::uint32_t sent_value(std::uint32_t code) {
    if constexpr (sent_bytes() == 1) {
      return __float_as_uint(fp8_values<Communication>(static_cast<std::uint16_t>(code)).x);
    } else {
      return widen<Communication>(code);
    }
  }
  __device__ __forceinline__ std::uint32_t contribution(const numerics::tile_scale& scale,
                                                        std::uint32_t x,
                                                        std::uint32_t dither) const {
    if constexpr (Round == rounding::stochastic || sent_bytes() == 4) {
      constexpr format_spec communication = spec_of(Communication);
      return numerics::contribution<hardware>({communication, rule, Round}, scale, x, dither);
    } else if constexpr (sent_bytes() == 2) {
      return half_pair<Communication, false>(x, x) & 0xFFFFu;
    } else {
      const std::uint32_t y = numerics::scaled<hardware>(rule, scale, x);
      return unsaturated<Communication>(y, fp8_pair<Communication>(y, y) & 0xFFu);
    }
  }
  __device__ __forceinline__ static std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
    return hardware::sum(a, b);
  }
  __device__ __forceinline__ static std::uint32_t result(const numerics::tile_scale& scale,
                                                         std::uint32_t total,
                                                         std::uint32_t factor) {
    std::uint32_t t = total;
    if constexpr (sent_bytes() == 1) t = hardware::product(t, scale.dequantization_scale);
    t = hardware::product(t, factor);  // NaN is canonical from here on
    if constexpr (own_bytes() == 4) {
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

/// The elements of a range in one chunk.
struct range_part {
  list_row row;
  std::uint32_t tensor;
  std::int64_t start;        ///< position of the tensor in the list
  std::int64_t first, last;  ///< the elements [first, last) of the tensor
  unsigned lane;
};

/// Calls work(part) with all lanes of a warp, for each chunk of the range.
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
    work(range_part{row, tensor, start, begin > c.first ? begin : c.first,
                    end < chunk_end ? end : chunk_end, lane});
  }
}

/// Loads and stores elements of a tensor whose codes have `bytes` bytes, of any strides and
/// alignment.
struct elements {
  const list_row& row;
  int bytes;
  bool aligned = reinterpret_cast<std::uintptr_t>(row.data) % static_cast<unsigned>(bytes) == 0;

  __device__ __forceinline__ std::byte* at(std::int64_t i) const {
    return static_cast<std::byte*>(row.data) + numerics::offset_of(row, i) * bytes;
  }
  __device__ __forceinline__ std::uint32_t load(std::int64_t i) const {
    const std::byte* const p = at(i);
    return aligned ? load_aligned(p, bytes) : static_cast<std::uint32_t>(load_code(p, bytes));
  }
  __device__ __forceinline__ void store(std::int64_t i, std::uint32_t code) const {
    std::byte* const p = at(i);
    if (aligned) {
      store_aligned(p, bytes, code);
    } else {
      store_code(p, bytes, code);
    }
  }
};

// --- largest magnitudes and scales

/// The amax over finite elements. All lanes must call.
template <class Steps>
__device__ __forceinline__ numerics::tile_amax amax_of(const Steps& steps, const range_part& part) {
  const elements codes{part.row, steps.own_bytes()};
  numerics::tile_amax amax = numerics::no_amax;
#pragma unroll 4
  for (std::int64_t i = part.first + part.lane; i < part.last; i += 32) {
    const std::uint32_t x = steps.own_value(codes.load(i));
    amax = numerics::combined(amax, numerics::amax_contribution(nonfinite::skip_nonfinite, x));
  }
  return __reduce_max_sync(all_lanes, amax);
}

/// Updates words[tensor] with the amax of each chunk.
template <class Arithmetic>
__global__ void __launch_bounds__(list_threads, list_residents)
    amax_kernel(const reduction_list list, const list_range range, std::uint32_t* const words) {
  for_each_part(list, range, [&](const range_part& part) {
    const auto by = [&](const auto& steps) {
      const numerics::tile_amax amax = amax_of(steps, part);
      if (part.lane == 0) atomicMax(words + part.tensor, numerics::amax_to_word(amax));
    };
    if constexpr (std::is_same_v<Arithmetic, hardware>) {
      using enum format_id;
      constexpr rounding any = rounding::nearest_even;
      if (part.row.format == fp32) return by(reduction_by_hardware<fp32, fp32, any>{});
      if (part.row.format == fp16) return by(reduction_by_hardware<fp16, fp32, any>{});
      by(reduction_by_hardware<bf16, fp32, any>{});
    } else {
      by(reduction_by_definition{spec_of(part.row.format), {}});
    }
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

/// Elements of a thread's loop at a time: dithers take too many registers for more than one.
template <class Steps>
inline constexpr int unrolled_contributions = 1;
template <format_id Own, format_id Communication>
inline constexpr int
    unrolled_contributions<reduction_by_hardware<Own, Communication, rounding::nearest_even>> = 4;

/// The scale of a tensor; 1 if the communication dtype has no scale.
__device__ __forceinline__ tile_scale scale_of(const reduction_list& list, std::uint32_t tensor) {
  if (list.scales == nullptr) return {numerics::binary32::one, numerics::binary32::one};
  return list.scales[tensor];
}

/// Converts the elements of a range to the communication dtype.
template <class Steps>
__global__ void __launch_bounds__(list_threads, list_residents)
    contributions_kernel(const reduction_list list, const list_range range,
                         const reduction_task task, const Steps steps,
                         std::byte* const communication) {
  for_each_part(list, range, [&](const range_part& part) {
    const tile_scale scale = scale_of(list, part.tensor);
    const elements codes{part.row, steps.own_bytes()};
    std::byte* const out = communication + (part.start - range.begin) * steps.sent_bytes();
#pragma unroll(unrolled_contributions <Steps>)
    for (std::int64_t i = part.first + part.lane; i < part.last; i += 32) {
      std::uint32_t dither = 0;
      if (steps.round() == rounding::stochastic) {
        dither = dither_of(task.random, task.index + static_cast<std::uint64_t>(part.start + i));
      }
      const std::uint32_t x = steps.own_value(codes.load(i));
      store_aligned(out + i * steps.sent_bytes(), steps.sent_bytes(),
                    steps.contribution(scale, x, dither));
    }
  });
}

/// Sums the contributions of all ranks, in rank order, and rounds the sums to the tensors' format.
template <class Steps>
__global__ void __launch_bounds__(list_threads, list_residents)
    sums_kernel(const reduction_list list, const list_range range, const reduction_task task,
                const Steps steps, const std::byte* const communication, const std::int64_t share,
                std::byte* const sums) {
  for_each_part(list, range, [&](const range_part& part) {
    const tile_scale scale = scale_of(list, part.tensor);
    const int sent = steps.sent_bytes(), own = steps.own_bytes();
    const std::int64_t before = part.start - range.begin;
    for (std::int64_t i = before + part.first + part.lane; i < before + part.last; i += 32) {
      std::uint32_t total = steps.sent_value(load_aligned(communication + i * sent, sent));
#pragma unroll 4
      for (int rank = 1; rank < task.ranks; ++rank) {
        const std::byte* const code = communication + (rank * share + i) * sent;
        total = steps.sum(total, steps.sent_value(load_aligned(code, sent)));
      }
      store_aligned(sums + i * own, own, steps.result(scale, total, task.factor));
    }
  });
}

/// Copies dense codes to the elements of a range.
template <int Bytes>
__global__ void __launch_bounds__(list_threads, list_residents)
    results_kernel(const reduction_list list, const list_range range,
                   const std::byte* const results) {
  for_each_part(list, range, [&](const range_part& part) {
    const elements codes{part.row, Bytes};
    const std::int64_t before = part.start - range.begin;
#pragma unroll 4
    for (std::int64_t i = part.first + part.lane; i < part.last; i += 32) {
      codes.store(i, load_aligned(results + (before + i) * Bytes, Bytes));
    }
  });
}

}  // namespace samebits::cuda
