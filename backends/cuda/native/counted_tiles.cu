// Quantization in one pass over the matrix, with statistics: as block_tiles.cu by the FP8
// conversion, and each block joins the leaves of the sum trees of contract §6 up to the width of
// its patch.
#include <cstdint>

#include "backends/cuda/native/block_tiles.cuh"
#include "backends/cuda/native/patch_block.cuh"
#include "backends/cuda/native/strip_cast.cuh"
#include "backends/cuda/statistics.cuh"

namespace samebits::cuda {
namespace {

/// product_cast; keeps the dequantization scale where others keep a reciprocal.
template <format_id To>
struct counted_cast : product_cast<To> {
  __device__ __forceinline__ static tile_factor factor_of(const tile_scale& s) {
    return {s.factor, s.stored};
  }
};

/// Codes from here on have the exponent of the largest finite numbers, or more: in a block that has
/// one, what a code stands for might be Inf, and all goes by the definition.
template <format_id From>
inline constexpr std::uint32_t top_binade = inf_magnitude<From> -
                                            (1u << spec_of(From).mantissa_bits);

/// What a thread counts where all elements of the block are finite: none of them saturates, since
/// RN(amax * factor) rounds to no more than the largest code.
template <format_id From>
struct plain_counts {
  static constexpr bool paired = spec_of(From).storage_bits == 16;
  std::uint32_t lowest = 0xFFFFFFFFu;  ///< of magnitudes - 1, where 0 wraps to the top
  std::uint32_t zeros = 0, zero_codes = 0;

  __device__ __forceinline__ void add(const strip_of<From>& x, uint2 codes) {
    if constexpr (paired) {
      const std::uint32_t least =
          smaller_magnitudes<From>(smaller_magnitudes<From>(x.w[0], x.w[1]),
                                   smaller_magnitudes<From>(x.w[2], x.w[3])) &
          0x7FFF7FFFu;
      if ((least & 0xFFFFu) != 0 && least >> 16 != 0) {
        lowest = __vminu2(lowest, least - 0x00010001u);
      } else {
#pragma unroll
        for (const std::uint32_t two : x.w) {
          const std::uint32_t magnitudes = two & 0x7FFF7FFFu;
          lowest = __vminu2(lowest, __vsub2(magnitudes, 0x00010001u));
          zeros += ((magnitudes & 0xFFFFu) == 0) + (magnitudes >> 16 == 0);
        }
      }
    } else {
#pragma unroll
      for (const std::uint32_t code : x.w) {
        const std::uint32_t less = (code & 0x7FFFFFFFu) - 1;
        lowest = min(lowest, less);
        if (less == 0xFFFFFFFFu) ++zeros;
      }
    }
    const std::uint32_t a = (codes.x & 0x7F7F7F7Fu) + 0x7F7F7F7Fu;  // bit 7: not zero
    const std::uint32_t b = (codes.y & 0x7F7F7F7Fu) + 0x7F7F7F7Fu;
    if ((a & b & 0x80808080u) != 0x80808080u) {
      zero_codes += __popc(~a & 0x80808080u) + __popc(~b & 0x80808080u);
    }
  }
  /// most: the code of the largest magnitude.
  __device__ __forceinline__ element_counts counts(std::uint32_t most) const {
    element_counts c;
    c.zeros = zeros;
    c.underflowed = zero_codes - zeros;
    c.amax = numerics::decode<std::uint32_t>(spec_of(From), most);
    std::uint32_t least = lowest;
    if constexpr (paired) {
      const std::uint32_t least_of_two = min(lowest & 0xFFFFu, lowest >> 16);
      least = least_of_two == 0xFFFFu ? 0xFFFFFFFFu : least_of_two;
    }
    if (least != 0xFFFFFFFFu) {
      c.min_nonzero = numerics::decode<std::uint32_t>(spec_of(From), least + 1);
    }
    return c;
  }
};

/// x minus what its code stands for. Of a 16-bit format the difference of two numbers that are
/// equal, within a factor of two of each other or of which one is zero needs no more bits than
/// binary32 has. A code's value can be more than twice x by its scale's roundings alone, 2^-22 of
/// it, and does not leave x's binade then: x has 11 bits at most.
template <format_id From>
__device__ __forceinline__ double error_of(float x, float restored) {
  if constexpr (spec_of(From).storage_bits == 16) {
    return static_cast<double>(__fsub_rn(x, restored));
  } else {
    return __dsub_rn(static_cast<double>(x), static_cast<double>(restored));
  }
}

/// RN(RN(a * a) + RN(b * b)); the squares of numbers of 24 bits are exact, so an fma rounds as the
/// sum does.
template <bool Exact>
__device__ __forceinline__ double sum_of_squares(double a, double b) {
  const double square = __dmul_rn(b, b);
  return Exact ? __fma_rn(a, a, square) : __dadd_rn(__dmul_rn(a, a), square);
}

/// The node of a strip: eight leaves.
template <format_id From, format_id To>
__device__ __forceinline__ sum_node node_of(const strip_of<From>& x, uint2 codes,
                                            std::uint32_t stored) {
  sum_node nodes[strip / 2];
#pragma unroll
  for (int i = 0; i < strip; i += 2) {
    const std::uint32_t word = i < 4 ? codes.x : codes.y;
    const float2 values = fp8_values<To>(static_cast<std::uint16_t>(word >> (i % 4 * 8)));
    const float s = __uint_as_float(stored);
    const float a = element<From>(x, i), b = element<From>(x, i + 1);
    nodes[i / 2] = {
        sum_of_squares<true>(static_cast<double>(a), static_cast<double>(b)),
        sum_of_squares<spec_of(From).storage_bits == 16>(
            error_of<From>(a, __fmul_rn(values.x, s)), error_of<From>(b, __fmul_rn(values.y, s)))};
  }
  return joined(joined(nodes[0], nodes[1]), joined(nodes[2], nodes[3]));
}

/// Codes, counts and node of a strip by the definition; `reciprocal` is the stored scale.
template <format_id From, format_id To>
__device__ __noinline__ void defined_strip_counted(const patch_task& t, const tile_factor& factor,
                                                   std::uint64_t row, std::uint32_t col,
                                                   element_counts& counts, uint2& codes,
                                                   sum_node& node) {
  sum_node nodes[strip];
  std::uint64_t packed_codes = 0;
#pragma unroll 1
  for (int i = 0; i < strip; ++i) {
    const std::uint32_t x =
        numerics::decode<std::uint32_t>(spec_of(From), load_element<From>(t, row, col + i));
    const std::uint32_t y = numerics::scaled<hardware>(t.scale.math, {0, factor.factor}, x);
    const auto cast = numerics::encode<std::uint32_t>(spec_of(To), t.cast, y, 0);
    const std::uint32_t restored =
        numerics::rescaled<hardware>(spec_of(To), cast.code, factor.reciprocal);
    count({x, y, cast.code, restored, cast.overflow}, counts);
    nodes[i] = leaf_of(x, restored);
    packed_codes |= std::uint64_t{cast.code} << (8 * i);
  }
  for (int n = strip; n > 1; n /= 2) {
    for (int i = 0; i < n / 2; ++i) nodes[i] = joined(nodes[2 * i], nodes[2 * i + 1]);
  }
  node = nodes[0];
  codes =
      make_uint2(static_cast<unsigned>(packed_codes), static_cast<unsigned>(packed_codes >> 32));
}

/// The nodes of a block's strips, row after row: eight neighbours go to one thread.
struct strip_nodes {
  static constexpr unsigned count = block_threads * rows_a_thread;
  sum_node nodes[count];

  /// Neighbours are exchanged among each other so that threads which read eight each do not meet in
  /// the banks.
  __device__ __forceinline__ static unsigned slot(unsigned n) { return n ^ (n >> 3 & 7); }

  /// All threads of the block come here once all nodes are there; `lanes` threads, 2^lanes_log2,
  /// are a row. f(row, node) for each row, by one thread.
  template <class Function>
  __device__ __forceinline__ void join_rows(int lanes_log2, const Function& f) const {
    sum_node eight[8];
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) eight[k] = nodes[slot(threadIdx.x * 8 + k)];
#pragma unroll
    for (int n = 8; n > 1; n /= 2) {
#pragma unroll
      for (int k = 0; k < n / 2; ++k) eight[k] = joined(eight[2 * k], eight[2 * k + 1]);
    }
    sum_node node = eight[0];
    const int left = lanes_log2 - 3;  // log2 of the threads that share a row now
    for (int apart = 1; apart < 1 << left; apart <<= 1) {
      node = joined(node, {__shfl_xor_sync(0xFFFFFFFFu, node.signal, apart),
                           __shfl_xor_sync(0xFFFFFFFFu, node.noise, apart)});
    }
    if ((threadIdx.x & ((1u << left) - 1)) == 0) f(threadIdx.x >> left, node);
  }
};

/// The counts of a warp, for each of its lanes.
__device__ __forceinline__ element_counts of_warp(const element_counts& c) {
  const auto sum = [](std::uint64_t n) {
    return std::uint64_t{__reduce_add_sync(0xFFFFFFFFu, static_cast<std::uint32_t>(n))};
  };
  return {sum(c.zeros),
          sum(c.nan),
          sum(c.inf),
          sum(c.underflowed),
          sum(c.saturated),
          __reduce_max_sync(0xFFFFFFFFu, c.amax),
          __reduce_min_sync(0xFFFFFFFFu, c.min_nonzero)};
}

template <format_id From, format_id To, shape Shape>
__global__ void __launch_bounds__(block_threads, spec_of(From).storage_bits == 16 ? 3 : 2)
    counted_tiles_kernel(const __grid_constant__ patch_task t, const statistics_parts parts) {
#if __CUDA_ARCH__ >= 890
  if (t.skip != nullptr && *t.skip != 0) return;
  using cast = counted_cast<To>;
  __shared__ std::uint32_t maxima[most_tiles<Shape>];
  __shared__ tile_factor factors[most_tiles<Shape>];
  __shared__ strip_nodes strips;
  __shared__ element_counts of_warps[block_threads / 32];
  const place at = place_of(t, blockIdx.x);
  strip_of<From> x[rows_a_thread];
  load_strips<From, access::strips>(t, at.row, at.col, at.count, x);
  const unsigned tiles = static_cast<unsigned>(block_elements) >> (t.tile_rows + t.tile_cols);
  if constexpr (Shape != shape::rows) {
    for (unsigned i = threadIdx.x; i < tiles; i += block_threads) maxima[i] = 0;
  }
  maxima_of<From, Shape> mine(x);
  const std::uint32_t most = mine.of_all();
  const bool plain = !__syncthreads_or(most >= top_binade<From>);
  if (!plain) mine = maxima_of<From, Shape>(x, t, at.row, at.col);
  join_maxima<From, Shape>(t, at, mine, maxima);
  __syncthreads();
  for (unsigned i = threadIdx.x; i < tiles; i += block_threads) {
    const std::uint64_t row = at.block_row + (i / at.tiles_across << t.tile_rows);
    const std::uint32_t col = at.block_col + (i % at.tiles_across << t.tile_cols);
    if (row >= t.rows || col >= t.cols) continue;
    const std::uint64_t tile_row = row >> t.tile_rows;
    const std::uint32_t tile_col = col >> t.tile_cols;
    const patch_scale s =
        scale_of_tile<From, To, cast>(t, {maxima[i], !plain, plain}, tile_row, tile_col);
    factors[i] = cast::factor_of(s.scale);
    store_scale(t, s.scale, tile_row, tile_col);
  }
  __syncthreads();

  const block_factors<Shape> of_block{factors + at.tile,
                                      Shape == shape::rows ? at.tiles_across : 0};
  code_rows<access::strips> rows(t, at);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const unsigned first_strip = (at.line * rows_a_thread << t.lanes) + at.lane;
  const auto keep = [&](int i, const sum_node& node) {
    strips.nodes[strip_nodes::slot(first_strip + (i << t.lanes))] = node;
  };
  element_counts counts;
  if (plain) {
    plain_counts<From> of_thread;
#pragma unroll
    for (int i = 0; i < rows_a_thread; ++i) {
      const one_factor factor = of_block.of_row(i);
      const uint2 codes = cast::template codes<From>(x[i], factor);
      rows.store(codes);
      keep(i, node_of<From, To>(x[i], codes, factor.factor.reciprocal));
      if (i < at.count) of_thread.add(x[i], codes);
    }
    counts = of_thread.counts(most);
  } else {
#pragma unroll 1
    for (int i = 0; i < rows_a_thread; ++i) {
      uint2 codes{};
      sum_node node;
      if (i < at.count) {
        defined_strip_counted<From, To>(t, of_block.of_row(i).factor, at.row + i, at.col, counts,
                                        codes, node);
      }
      rows.store(codes);
      keep(i, node);
    }
  }
  counts = of_warp(counts);
  if (lane == 0) of_warps[warp] = counts;
  __syncthreads();
  strips.join_rows(t.lanes, [&](unsigned row, const sum_node& node) {
    if (at.block_row + row >= t.rows) return;
    parts.nodes[(at.block_row + row) * t.col_blocks + blockIdx.x % t.col_blocks] = node;
  });
  if (threadIdx.x == 0) {
    for (int w = 1; w < block_threads / 32; ++w) counts.join(of_warps[w]);
    parts.counts[blockIdx.x] = counts;
  }
#endif
}

template <format_id From, format_id To>
void launch(const patch_task& t, const statistics_parts& parts, cudaStream_t stream) {
  const auto kernel = t.tile_rows == 0 ? counted_tiles_kernel<From, To, shape::rows>
                                       : counted_tiles_kernel<From, To, shape::squares>;
  kernel<<<static_cast<unsigned>(block_count(t)), block_threads, 0, stream>>>(t, parts);
}

template <format_id From>
void launch_to(const patch_task& t, format_id to, const statistics_parts& parts,
               cudaStream_t stream) {
  if (to == format_id::e4m3) {
    launch<From, format_id::e4m3>(t, parts, stream);
  } else {
    launch<From, format_id::e5m2>(t, parts, stream);
  }
}

}  // namespace

void launch_counted_tiles(const patch_task& t, format_id from, format_id to,
                          const statistics_parts& parts, cudaStream_t stream) {
  switch (from) {
    case format_id::fp32: return launch_to<format_id::fp32>(t, to, parts, stream);
    case format_id::fp16: return launch_to<format_id::fp16>(t, to, parts, stream);
    default: return launch_to<format_id::bf16>(t, to, parts, stream);
  }
}

}  // namespace samebits::cuda
