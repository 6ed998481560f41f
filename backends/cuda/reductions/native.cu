// Reductions of dense matrices aligned to 16 bytes. Every lane loads 16 bytes at a time.
//
//   dense_sums_kernel    one warp per chunk of 4096 elements: one partial sum per chunk
//   dense_amax_kernel     grid-stride over vectors of 16 bytes, one atomic maximum per warp
//   dense_counts_kernel   grid-stride over vectors of 16 bytes, atomic additions per warp
//
// reductions.cu combines the partial sums.
#include "backends/cuda/reductions/reductions.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/reductions/chunk_sum.cuh"
#include "backends/cuda/reductions/reduction_parts.cuh"
#include "backends/dispatch/visit.hpp"
#include "numerics/sums/sum_tree.hpp"

namespace samebits::cuda {
namespace {

using backends::reduction;
using backends::reduction_call;
using numerics::chunk_elements;

/// The partial sum of each chunk. One warp per chunk.
template <format_id F, reduction What, class Number>
__global__ void __launch_bounds__(reduction_threads, 4)
    dense_sums_kernel(const std::byte* const x, const std::byte* const y, const std::uint64_t count,
                      Number* const partial_sums) {
  constexpr std::uint64_t bytes = spec_of(F).storage_bits / 8;
  constexpr int group_bits = What == reduction::dot ? 1 : 2;  // 4 loads in flight
  const std::uint64_t chunks = (count + chunk_elements - 1) / chunk_elements;
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (reduction_threads / 32);
  for (std::uint64_t chunk = (std::uint64_t{blockIdx.x} * reduction_threads + threadIdx.x) / 32;
       chunk < chunks; chunk += warps) {
    const std::uint64_t first = chunk * chunk_elements;
    const auto n = static_cast<int>(min(static_cast<std::uint64_t>(chunk_elements), count - first));
    const std::byte* const a = x + first * bytes;
    const std::byte* const b = What == reduction::dot ? y + first * bytes : nullptr;
    const Number partial_sum =
        n == chunk_elements
            ? chunk_sum<F, What, Number, group_bits, true>(a, b, n, lane).partial_sum()
            : chunk_sum<F, What, Number, group_bits, false>(a, b, n, lane).partial_sum();
    if (lane == 0) partial_sums[chunk] = partial_sum;
  }
}

/// Calls f(vector) for every whole vector of 16 bytes, with four loads of a thread in flight. Then
/// calls last(code) for each code after the last whole vector.
template <format_id F, class Function, class Last>
__device__ __forceinline__ void for_each_vector(const std::byte* data, std::uint64_t count,
                                                const Function& f, const Last& last) {
  using codes = vector_codes<F>;
  constexpr int bytes = codes::bits / 8;
  constexpr int group = 4;
  const auto* const vectors = reinterpret_cast<const uint4*>(data);
  const std::uint64_t whole = count / codes::count;
  const std::uint64_t step = std::uint64_t{gridDim.x} * reduction_threads;
  const std::uint64_t own = std::uint64_t{blockIdx.x} * reduction_threads + threadIdx.x;
  std::uint64_t i = own;
  for (; i + (group - 1) * step < whole; i += group * step) {
    uint4 v[group];
#pragma unroll
    for (int k = 0; k < group; ++k) v[k] = __ldcs(vectors + i + k * step);
#pragma unroll
    for (int k = 0; k < group; ++k) f(v[k]);
  }
#pragma unroll 1
  for (; i < whole; i += step) f(__ldcs(vectors + i));
  const std::uint64_t rest = whole * codes::count + own;
  if (rest < count) last(static_cast<std::uint32_t>(load_code(data + rest * bytes, bytes)));
}

/// The amax of a dense matrix.
template <format_id F>
__global__ void __launch_bounds__(reduction_threads)
    dense_amax_kernel(const std::byte* const data, const std::uint64_t count,
                      std::uint32_t* const result) {
  constexpr int bits = spec_of(F).storage_bits;
  constexpr auto keep = static_cast<std::uint32_t>(numerics::magnitude_mask(spec_of(F)));
  std::uint32_t largest = 0;  // 8 and 16 bits: one maximum in each half
  for_each_vector<F>(
      data, count,
      [&](const uint4& v) {
        for (const std::uint32_t word : {v.x, v.y, v.z, v.w}) {
          if constexpr (bits == 32) {
            largest = max(largest, word & keep);
          } else if constexpr (bits == 16) {
            largest = __vmaxu2(largest, word & keep * 0x10001u);
          } else {
            largest = __vmaxu2(largest, word & keep * 0x10001u);
            largest = __vmaxu2(largest, word >> 8 & keep * 0x10001u);
          }
        }
      },
      [&](std::uint32_t code) {
        largest = bits < 32 ? __vmaxu2(largest, code & keep) : max(largest, code & keep);
      });
  if constexpr (bits < 32) largest = max(largest & 0xFFFFu, largest >> 16);
  raise_amax(spec_of(F), largest, result);
}

/// Counts of a dense matrix.
template <format_id F>
__global__ void __launch_bounds__(reduction_threads)
    dense_counts_kernel(const std::byte* const data, const std::uint64_t count,
                        element_counts* const result) {
  constexpr int bits = spec_of(F).storage_bits;
  code_counts counts;
  for_each_vector<F>(
      data, count,
      [&](const uint4& v) {
        for (const std::uint32_t word : {v.x, v.y, v.z, v.w}) {
#pragma unroll
          for (int at = 0; at < 32; at += bits) counts.add(spec_of(F), word >> at);
        }
      },
      [&](std::uint32_t code) { counts.add(spec_of(F), code); });
  add_counts(counts, result);
}

}  // namespace

void enqueue_wide(const reduction_call& call, std::uint64_t count, void* result, void* stream) {
  const auto* const x = static_cast<const std::byte*>(call.x.data);
  const auto* const y = static_cast<const std::byte*>(call.y.data);
  backends::with_list_format(call.x.format, [&]<format_id F>() {
    const auto launch = [&](auto kernel, std::uint64_t items, int of_block, auto... arguments) {
      launch_kernel(
          "reduction", kernel,
          resident_grid(kernel, reduction_threads, items, static_cast<std::uint64_t>(of_block)),
          reduction_threads, 0, static_cast<cudaStream_t>(stream), arguments...);
    };
    const auto sums = [&]<reduction What, class Number>() {
      launch(dense_sums_kernel<F, What, Number>, (count + chunk_elements - 1) / chunk_elements,
             reduction_threads / 32, x, y, count, static_cast<Number*>(result));
    };
    const std::uint64_t vectors = count / vector_codes<F>::count;
    switch (call.what) {
      case reduction::amax:
        return launch(dense_amax_kernel<F>, vectors, reduction_threads, x, count,
                      static_cast<std::uint32_t*>(result));
      case reduction::counts:
        return launch(dense_counts_kernel<F>, vectors, reduction_threads, x, count,
                      static_cast<element_counts*>(result));
      case reduction::sum: return sums.template operator()<reduction::sum, double>();
      case reduction::sum_of_squares:
        return sums.template operator()<reduction::sum_of_squares, double>();
      case reduction::dot:
        if (call.options.precision == accumulation::fp64)
          return sums.template operator()<reduction::dot, double>();
        sums.template operator()<reduction::dot, float>();
    }
  });
}

}  // namespace samebits::cuda
