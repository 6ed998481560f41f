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
#include <type_traits>

#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/instructions/half_pairs.cuh"
#include "backends/cuda/instructions/halves.cuh"
#include "backends/cuda/reductions/reduction_parts.cuh"
#include "backends/dispatch/visit.hpp"
#include "numerics/sums/sum_tree.hpp"

namespace samebits::cuda {
namespace {

using backends::reduction;
using backends::reduction_call;
using numerics::chunk_elements;

/// Vectors of 16 bytes of codes of format F.
template <format_id F>
struct vector_codes {
  static constexpr int bits = spec_of(F).storage_bits;
  static constexpr int count = 128 / bits;
  static constexpr int of_word = 32 / bits;

  /// The values of the codes in a word.
  __device__ __forceinline__ static void values(std::uint32_t word, float (&x)[of_word]) {
    if constexpr (bits == 32) {
      x[0] = __uint_as_float(word);
    } else if constexpr (bits == 16) {
      x[0] = __uint_as_float(widen<F>(word & 0xFFFFu));
      x[1] = __uint_as_float(widen<F>(word >> 16));
    } else {
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const float2 v = float_pair_of<F>(word, pair);
        x[2 * pair] = v.x, x[2 * pair + 1] = v.y;
      }
    }
  }

  /// Loads the first n codes of a vector; the other codes are `rest`.
  __device__ static uint4 load_some(const std::byte* p, int n, std::uint32_t rest) {
    std::uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const std::uint32_t code =
          i < n ? static_cast<std::uint32_t>(load_code(p + i * (bits / 8), bits / 8)) : rest;
      words[i / of_word] |= code << (i % of_word * bits);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
  }
};

/// Whether binary32 holds every product of two numbers of the format. Then one product is converted
/// to binary64 instead of two factors. Conversions to binary64 bound these kernels' speed.
SAMEBITS_INLINE constexpr bool has_short_products(format_id f) {
  return f == format_id::fp16 || f == format_id::e4m3 || f == format_id::e5m2;
}

/// Inputs and partial sums of neighbouring elements.
template <format_id F, reduction What, class Number>
struct element_sums {
  using codes = vector_codes<F>;
  /// Whether partial sums are in binary32: sums of 16 e4m3 numbers are exact there, as multiples of
  /// 2^-9 below 2^13.
  static constexpr bool is_short = What == reduction::sum && F == format_id::e4m3;
  using between = std::conditional_t<is_short, float, Number>;
  using sums = signed_sums<between>;

  /// The sum of two neighbouring inputs. All products are exact in binary64. So one product may be
  /// fused with the addition, which still rounds once.
  __device__ __forceinline__ static between pair(float x0, float y0, float x1, float y1) {
    if constexpr (What == reduction::sum) {
      return sums::add_partial_sums(static_cast<between>(x0), static_cast<between>(x1));
    } else if constexpr (sizeof(Number) == 8 && !has_short_products(F)) {
      return __fma_rn(static_cast<double>(x0), static_cast<double>(y0), product<double>(x1, y1));
    } else {
      return sums::add_partial_sums(static_cast<Number>(product<float>(x0, y0)),
                                    static_cast<Number>(product<float>(x1, y1)));
    }
  }
  /// The partial sum of two neighbouring words.
  __device__ __forceinline__ static between of_words(std::uint32_t x0, std::uint32_t y0,
                                                     std::uint32_t x1, std::uint32_t y1) {
    constexpr int n = codes::of_word;
    float a[n], b[n], c[n], d[n];
    codes::values(x0, a);
    codes::values(y0, b);
    codes::values(x1, c);
    codes::values(y1, d);
    if constexpr (n == 1) {
      return pair(a[0], b[0], c[0], d[0]);
    } else if constexpr (n == 2) {
      return sums::add_partial_sums(pair(a[0], b[0], a[1], b[1]), pair(c[0], d[0], c[1], d[1]));
    } else {
      return sums::add_partial_sums(
          sums::add_partial_sums(pair(a[0], b[0], a[1], b[1]), pair(a[2], b[2], a[3], b[3])),
          sums::add_partial_sums(pair(c[0], d[0], c[1], d[1]), pair(c[2], d[2], c[3], d[3])));
    }
  }
  __device__ __forceinline__ static Number of(const uint4& x, const uint4& y) {
    return static_cast<Number>(
        sums::add_partial_sums(of_words(x.x, y.x, x.y, y.y), of_words(x.z, y.z, x.w, y.w)));
  }
};

/// The partial sum of a chunk, computed by one warp. Each lane loads one vector of 16 bytes a turn.
/// The partial sum of lane l's vector in turn t is number 32 * t + l of its level (turn_tree).
template <format_id F, reduction What, class Number, bool Full>
class chunk_sum {
  using codes = vector_codes<F>;
  using sums = signed_sums<Number>;
  using tree = turn_tree<sums>;
  static constexpr int turn_bits = codes::count == 4 ? 5 : codes::count == 8 ? 4 : 3;
  static_assert((32 * codes::count) << turn_bits == chunk_elements);
  static constexpr int group_bits = What == reduction::dot ? 1 : 2;  ///< 4 loads in flight
  static constexpr int group = 1 << group_bits;
  static constexpr int bytes = codes::bits / 8;

 public:
  __device__ __forceinline__ chunk_sum(const std::byte* x, const std::byte* y, int count,
                                       unsigned lane)
      : x_(x), y_(y), count_(count), lane_(lane) {}

  /// The chunk's sum, in every lane.
  __device__ __forceinline__ Number partial_sum() const {
    return tree::template of_chunk<turn_bits, group_bits>(
        [this](int first_turn) { return of_group(first_turn); });
  }

 private:
  __device__ __forceinline__ Number of_group(int first_turn) const {
    if (!Full && first_turn * 32 * codes::count >= count_) return sums::no_partial_sum();
    uint4 x[group], y[group];
#pragma unroll
    for (int i = 0; i < group; ++i) {
      x[i] = load(x_, first_turn + i, minus_zero);
      y[i] = What == reduction::dot ? load(y_, first_turn + i, one) : x[i];
    }
    Number partial_sums[group];
#pragma unroll
    for (int i = 0; i < group; ++i) partial_sums[i] = element_sums<F, What, Number>::of(x[i], y[i]);
    return tree::template of_partial_sums<group_bits>(partial_sums);
  }

  // Codes of missing elements. Then a sum adds -0, a dot product -0 * 1 and a sum of squares +0,
  // the square of -0: none of them changes the sum.
  static constexpr std::uint32_t minus_zero = std::uint32_t{1} << (codes::bits - 1);
  static constexpr std::uint32_t one = static_cast<std::uint32_t>(spec_of(F).bias)
                                       << spec_of(F).mantissa_bits;

  __device__ __forceinline__ uint4 load(const std::byte* data, int turn, std::uint32_t rest) const {
    const int first = (turn * 32 + static_cast<int>(lane_)) * codes::count;
    if (Full || first + codes::count <= count_) {
      return __ldcs(reinterpret_cast<const uint4*>(data + first * bytes));
    }
    return codes::load_some(data + first * bytes, count_ - first, rest);
  }

  const std::byte* x_;
  const std::byte* y_;
  int count_;
  unsigned lane_;
};

/// The partial sum of each chunk. One warp per chunk.
template <format_id F, reduction What, class Number>
__global__ void __launch_bounds__(reduction_threads, 4)
    dense_sums_kernel(const std::byte* const x, const std::byte* const y, const std::uint64_t count,
                      Number* const partial_sums) {
  constexpr std::uint64_t bytes = spec_of(F).storage_bits / 8;
  const std::uint64_t chunks = (count + chunk_elements - 1) / chunk_elements;
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (reduction_threads / 32);
  for (std::uint64_t chunk = (std::uint64_t{blockIdx.x} * reduction_threads + threadIdx.x) / 32;
       chunk < chunks; chunk += warps) {
    const std::uint64_t first = chunk * chunk_elements;
    const auto n = static_cast<int>(min(static_cast<std::uint64_t>(chunk_elements), count - first));
    const std::byte* const a = x + first * bytes;
    const std::byte* const b = What == reduction::dot ? y + first * bytes : nullptr;
    const Number partial_sum = n == chunk_elements
                                   ? chunk_sum<F, What, Number, true>(a, b, n, lane).partial_sum()
                                   : chunk_sum<F, What, Number, false>(a, b, n, lane).partial_sum();
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
