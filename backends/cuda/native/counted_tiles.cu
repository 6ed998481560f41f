// Quantization in one pass over the matrix, with statistics: as block_tiles.cu by the FP8
// conversion, and each warp joins the leaves of the sum trees of contract §6 up to the width of the
// patch.
#include <cstdint>

#include "backends/cuda/native/block_tiles.cuh"
#include "backends/cuda/native/patch_block.cuh"
#include "backends/cuda/native/strip_cast.cuh"
#include "backends/cuda/statistics.cuh"

namespace samebits::cuda {
namespace {

/// product_cast; keeps the dequantization scale where others keep a reciprocal. Elements whose
/// codes might stand for Inf, those of the topmost binade, go by the definition.
template <format_id To>
struct counted_cast : product_cast<To> {
  __device__ __forceinline__ static tile_factor factor_of(const tile_scale& s) {
    return {s.factor, s.stored};
  }
};

/// Codes from here on have the exponent of the largest finite numbers, or more.
template <format_id From>
inline constexpr std::uint32_t top_binade = inf_magnitude<From> -
                                            (1u << spec_of(From).mantissa_bits);

/// What a thread counts where all elements of the block are finite: none of them saturates, since
/// RN(amax * factor) rounds to no more than the largest code.
template <format_id From>
struct plain_counts {
  static constexpr bool paired = spec_of(From).storage_bits == 16;
  std::uint32_t lowest =
      paired ? 0x7FFF7FFFu : 0xFFFFFFFFu;  ///< magnitudes - 1; 0 wraps to the top
  std::uint32_t zeros = 0, zero_codes = 0;

  __device__ __forceinline__ void add(const strip_of<From>& x, uint2 codes) {
    if constexpr (paired) {
      // 8000 + magnitude - 1: as signed numbers in the order of magnitudes, with zero's on top.
      std::uint32_t all = 0xFFFFFFFFu, less[strip_of<From>::words];
#pragma unroll
      for (int k = 0; k < strip_of<From>::words; ++k) {
        less[k] = (x.w[k] | 0x80008000u) - 0x00010001u;
        lowest = __vmins2(lowest, less[k]);
        all &= less[k];
      }
      if ((all & 0x80008000u) != 0x80008000u) {
#pragma unroll
        for (const std::uint32_t w : less) zeros += __popc(~w & 0x80008000u);
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
      const std::uint32_t low = (lowest ^ 0x8000u) & 0xFFFFu, high = lowest >> 16 ^ 0x8000u;
      least = min(low, high) == 0xFFFFu ? 0xFFFFFFFFu : min(low, high);
    }
    if (least != 0xFFFFFFFFu) {
      c.min_nonzero = numerics::decode<std::uint32_t>(spec_of(From), least + 1);
    }
    return c;
  }
};

/// The node of a strip: eight leaves.
template <format_id From, format_id To>
__device__ __forceinline__ sum_node node_of(const strip_of<From>& x, uint2 codes,
                                            std::uint32_t stored) {
  sum_node nodes[strip];
#pragma unroll
  for (int i = 0; i < strip; i += 2) {
    const std::uint32_t word = i < 4 ? codes.x : codes.y;
    const float2 values = fp8_values<To>(static_cast<std::uint16_t>(word >> (i % 4 * 8)));
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const float restored = __fmul_rn(k == 0 ? values.x : values.y, __uint_as_float(stored));
      const double value = static_cast<double>(element<From>(x, i + k));
      const double error = __dsub_rn(value, static_cast<double>(restored));
      nodes[i + k] = {__dmul_rn(value, value), __dmul_rn(error, error)};
    }
  }
#pragma unroll
  for (int n = strip; n > 1; n /= 2) {
#pragma unroll
    for (int i = 0; i < n / 2; ++i) nodes[i] = joined(nodes[2 * i], nodes[2 * i + 1]);
  }
  return nodes[0];
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

/// Joins the nodes of two rows over up to 32 lanes of a row. What a lane ends up with is the signal
/// (lanes with bit 1 clear) or noise of the first (bit 0 clear) or second row.
__device__ __forceinline__ double join_lanes(sum_node first, sum_node second, int lanes_log2) {
  constexpr unsigned all = 0xFFFFFFFFu;
  const bool odd = (threadIdx.x & 1) != 0, noise = (threadIdx.x & 2) != 0;
  const sum_node keep = odd ? second : first, give = odd ? first : second;
  const sum_node row = {__dadd_rn(keep.signal, __shfl_xor_sync(all, give.signal, 1)),
                        __dadd_rn(keep.noise, __shfl_xor_sync(all, give.noise, 1))};
  double sum = __dadd_rn(noise ? row.noise : row.signal,
                         __shfl_xor_sync(all, noise ? row.signal : row.noise, 2));
  for (int apart = 4; apart < 1 << min(lanes_log2, 5); apart <<= 1) {
    sum = __dadd_rn(sum, __shfl_xor_sync(all, sum, apart));
  }
  return sum;
}

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
  __shared__ double sums[2][block_threads / 32][rows_a_thread * 2];  // kind, warp, its rows
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
    const patch_scale s = scale_of_tile<From, To, cast>(t, {maxima[i], !plain, plain});
    factors[i] = cast::factor_of(s.scale);
    store_scale(t, s.scale, row >> t.tile_rows, col >> t.tile_cols);
  }
  __syncthreads();

  const block_factors<Shape> of_block{factors + at.tile,
                                      Shape == shape::rows ? at.tiles_across : 0};
  code_rows<access::strips> rows(t, at);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // Lines of a warp: two where 16 lanes are a row.
  const unsigned line = lane >> min(t.lanes, 5), first_lane = line << min(t.lanes, 5);
  const auto keep = [&](int row, const sum_node& first, const sum_node& second) {
    const double sum = join_lanes(first, second, t.lanes);
    const unsigned place = lane - first_lane;
    if (place < 4) sums[place >> 1][warp][line * rows_a_thread + row + (place & 1)] = sum;
  };
  element_counts counts;
  if (plain) {
    plain_counts<From> of_thread;
#pragma unroll
    for (int i = 0; i < rows_a_thread; i += 2) {
      sum_node nodes[2];
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const one_factor factor = of_block.of_row(i + k);
        const uint2 codes = cast::template codes<From>(x[i + k], factor);
        rows.store(codes);
        nodes[k] = node_of<From, To>(x[i + k], codes, factor.factor.reciprocal);
        if (i + k < at.count) of_thread.add(x[i + k], codes);
      }
      keep(i, nodes[0], nodes[1]);
    }
    counts = of_thread.counts(most);
  } else {
#pragma unroll 1
    for (int i = 0; i < rows_a_thread; i += 2) {
      sum_node nodes[2];
#pragma unroll 1
      for (int k = 0; k < 2; ++k) {
        uint2 codes{};
        if (i + k < at.count) {
          defined_strip_counted<From, To>(t, of_block.of_row(i + k).factor, at.row + i + k, at.col,
                                          counts, codes, nodes[k]);
        }
        rows.store(codes);
      }
      keep(i, nodes[0], nodes[1]);
    }
  }
  counts = of_warp(counts);
  if (lane == 0) of_warps[warp] = counts;
  __syncthreads();
  // A row's node, from those of its warps: both kinds for each row of the block.
  const int warps = 1 << max(t.lanes - 5, 0);  // of a row
  const int lines = block_threads >> t.lanes;
  for (int i = threadIdx.x; i < 2 * lines * rows_a_thread; i += block_threads) {
    const int kind = i & 1, row = i >> 1;
    const int in_line = row % rows_a_thread, of_line = row / rows_a_thread;
    if (at.block_row + row >= t.rows) continue;
    const int first_warp = t.lanes >= 5 ? of_line * warps : of_line >> (5 - t.lanes);
    const int slot =
        t.lanes >= 5 ? in_line : (of_line & ((1 << (5 - t.lanes)) - 1)) * rows_a_thread + in_line;
    double nodes[block_threads / 32];
    for (int w = 0; w < warps; ++w) nodes[w] = sums[kind][first_warp + w][slot];
    for (int n = warps; n > 1; n /= 2) {
      for (int k = 0; k < n / 2; ++k) nodes[k] = __dadd_rn(nodes[2 * k], nodes[2 * k + 1]);
    }
    const std::uint64_t node = (at.block_row + row) * t.col_blocks + blockIdx.x % t.col_blocks;
    (kind == 0 ? parts.nodes[node].signal : parts.nodes[node].noise) = nodes[0];
  }
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
