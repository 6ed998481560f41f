// Quantization in one pass over the matrix, with statistics: as block_tiles.cu by the FP8
// conversion, and each block joins the leaves of the sum trees of contract §6 up to the width of
// its patches.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "backends/cuda/error.hpp"
#include "backends/cuda/native/block_tiles.cuh"
#include "backends/cuda/native/counted_patch.cuh"
#include "backends/cuda/native/counted_strip.cuh"

namespace samebits::cuda {
namespace {

/// Blocks that a multiprocessor holds; each takes patch after patch. Three have 80 registers a
/// thread and most of the L1 cache, and were slower.
constexpr int resident_counted = 2;

/// Codes from here on have the exponent of the largest finite numbers, or more: in a block that has
/// one, what a code stands for might be Inf, and all goes by the definition.
template <format_id From>
inline constexpr std::uint32_t top_binade = inf_magnitude<From> -
                                            (1u << spec_of(From).mantissa_bits);

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

/// The counts of a warp, for each of its lanes.
[[maybe_unused]] __device__ __forceinline__ element_counts of_warp(const element_counts& c) {
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

/// The same of a block with elements that go by the definition: of counted_code().
template <format_id From, shape Shape>
__device__ __noinline__ void join_counted_maxima(const patch_task& t, unsigned row_block,
                                                 unsigned col_block, std::uint32_t* tiles) {
  const place at(t, row_block, col_block);
  strip_of<From> x[rows_a_thread];
  load_strips<From, access::strips>(t, at.row, at.col, at.count, x);
  join_maxima<From, Shape>(t, at, row_maxima<From, rows_a_thread>(x, t, at.row, at.col), tiles);
}

/// Codes, nodes and counts of such a patch.
template <format_id From, format_id To>
__device__ __noinline__ void defined_strips(const counted_launch& c, unsigned row_block,
                                            unsigned col_block, const counted_factor* factors,
                                            strip_stage<From>& stage, element_counts& counts) {
  const patch_task& t = c.t;
  const place at(t, row_block, col_block);
  code_rows<access::strips> rows(t, at);
#pragma unroll 1
  for (int i = 0; i < rows_a_thread; ++i) {
    uint2 codes{};
    sum_node node;
    if (i < at.count) {
      const counted_factor& f = factors[i * c.row_step];
      defined_strip_counted<From, To>(t, {f.factor, f.stored}, at.row + i, at.col, counts, codes,
                                      node);
    }
    rows.store(codes);
    stage.set_node(i, node);
  }
}

/// The scales of a block's tiles, and what its threads need of them.
template <format_id From, format_id To, int Lanes>
__device__ __forceinline__ void find_factors(const counted_launch& c, const patch_place<Lanes>& at,
                                             bool plain, std::uint32_t* maxima,
                                             counted_factor* factors) {
  const patch_task& t = c.t;
  const int across_log2 = at.log2(t) + 3 - t.tile_cols;  // of the tiles side by side
  for (unsigned i = threadIdx.x; i < c.tiles; i += block_threads) {
    const std::uint64_t tile_row = (at.first_row(t) >> t.tile_rows) + (i >> across_log2);
    const std::uint32_t tile_col = (at.col_block << across_log2) + (i & ((1u << across_log2) - 1));
    const tile_maximum amax{maxima[i], !plain, plain};
    maxima[i] = 0;
    if (tile_row << t.tile_rows >= t.rows) continue;
    const tile_scale s =
        scale_of_tile<From, To, product_cast<To>>(t, amax, tile_row, tile_col).scale;
    std::uint32_t small = numerics::largest_vanishing(From, spec_of(To), s.stored);
    if constexpr (is_half<From>) {
      small = max(small, numerics::exact_squares(From).least - 1) * 0x10001u;
    }
    factors[i] = {s.factor, s.stored, small, 0};
    store_scale(t, s, tile_row, tile_col);
  }
}

/// Codes, nodes and counts of a thread's finite strips.
template <format_id From, format_id To, int Lanes>
__device__ __forceinline__ void coded_strips(const counted_launch& c, const patch_place<Lanes>& at,
                                             strip_stage<From>& stage,
                                             const counted_factor* factors, std::uint32_t most,
                                             strip_counts<From>& counts) {
  const patch_task& t = c.t;
  const int inside = at.count(t);
  const int stored = t.codes == nullptr ? 0 : inside;
  std::byte* to = t.codes + at.row(t) * t.codes_row_bytes + at.col(t);
  counts.most = max(counts.most, most);
  // Squares of large numbers need a closer look as well.
  const std::uint32_t all =
      From == format_id::bf16 && most >= numerics::exact_squares(From).most ? 0x7FFF7FFFu : 0;
  constexpr int together = 4;  // that have one test in common
#pragma unroll
  for (int i = 0; i < rows_a_thread; i += together) {
    strip_of<From> x[together];
    uint2 codes[together];
    sum_node nodes[together];
    std::uint32_t small = all;
#pragma unroll
    for (int k = 0; k < together; ++k, to += t.codes_row_bytes) {
      const counted_factor factor = factors[(i + k) * c.row_step];
      x[k] = stage.load(i + k);
      nodes[k] = coded<From, To>(x[k], factor, codes[k]);
      if (i + k < stored) *reinterpret_cast<uint2*>(to) = codes[k];
      small = max(small, factor.small);
    }
    counts.add(x, codes, small, inside - i, nodes);
#pragma unroll
    for (int k = 0; k < together; ++k) stage.set_node(i + k, nodes[k]);
  }
}

/// Patch after patch: while the strips of one are rounded the next is on its way from memory, and
/// while nodes are joined the next one's scales are found.
template <format_id From, format_id To, shape Shape, int Lanes>
__global__ void __launch_bounds__(block_threads, resident_counted)
    counted_tiles_kernel(const __grid_constant__ counted_launch c) {
#if __CUDA_ARCH__ >= 890
  const patch_task& t = c.t;
  if (t.skip != nullptr && *t.skip != 0) return;
  using lanes = patch_lanes<Lanes>;
  extern __shared__ uint4 shared[];
  auto& memory = *reinterpret_cast<counted_memory<From>*>(shared);
  constexpr bool ahead = counted_memory<From>::stages == 2;
  auto* const factors = reinterpret_cast<counted_factor*>(&memory + 1);
  auto* const maxima = reinterpret_cast<std::uint32_t*>(factors + c.tiles);
  for (unsigned i = threadIdx.x; i < c.tiles; i += block_threads) maxima[i] = 0;
  const unsigned first_tile =
      ((lanes::line(t) * rows_a_thread >> t.tile_rows) << (lanes::log2(t) + 3 - t.tile_cols)) +
      (lanes::lane(t) * strip >> t.tile_cols);
  strip_counts<From> of_thread;
  element_counts counts;
  unsigned stage = 0;
  std::uint32_t most = 0;

  // The maxima of the patch in a stage; whether it goes by the definition.
  const auto find_maxima = [&](unsigned in_stage) {
    strip_of<From> x[rows_a_thread];
#pragma unroll
    for (int i = 0; i < rows_a_thread; ++i) x[i] = memory.stage[in_stage].load(i);
    const row_maxima<From, rows_a_thread> mine(x);
    const std::uint32_t of_patch = mine.of_all();
    join_finite_maxima<From, Shape>(c, mine, of_patch, maxima + first_tile);
    return of_patch;
  };
  // Its factors, once all maxima are there.
  const auto find_scales = [&](const patch_place<Lanes>& at, bool plain) {
    if (!plain) {
      for (unsigned i = threadIdx.x; i < c.tiles; i += block_threads) maxima[i] = 0;
      __syncthreads();
      join_counted_maxima<From, Shape>(t, at.row_block, at.col_block, maxima);
      __syncthreads();
    }
    find_factors<From, To>(c, at, plain, maxima, factors);
  };

  patch_walk<Lanes> walk(c);  // what is to be fetched
  unsigned finished = 0;      // patches of the group
  patch_place<Lanes> here = walk.place(c), next = here;
  memory.stage[0].fetch(t, here);
  strip_stage<From>::wait();
  __syncthreads();
  most = find_maxima(0);
  bool plain = !__syncthreads_or(most >= top_binade<From>);
  find_scales(here, plain);
  walk.advance(c);
  bool more = !walk.ends(c);
  if (more) next = walk.place(c);
  if (ahead && more) memory.stage[1].fetch(t, next);
  __syncthreads();
#pragma unroll 1
  while (true) {
    strip_stage<From>& strips = memory.stage[stage];
    if (plain) {
      coded_strips<From, To>(c, here, strips, factors + first_tile, most, of_thread);
    } else {
      defined_strips<From, To>(c, here.row_block, here.col_block, factors + first_tile, strips,
                               counts);
    }
    if (ahead && more) {
      strip_stage<From>::wait();
      most = find_maxima(stage ^ 1);
      plain = !__syncthreads_or(most >= top_binade<From>);
      find_scales(next, plain);
    } else {
      __syncthreads();
    }
    // Nodes of a group's patches are joined as in binary counting.
    double node = strips.template join_row<Lanes>(t);
    bool whole = true;
#pragma unroll
    for (int level = 0; level < (Shape == shape::rows ? 0 : most_grouped); ++level) {
      if (!whole || level >= c.grouped) continue;
      if ((finished >> level & 1) != 0) {
        node = __dadd_rn(memory.waiting[level][threadIdx.x], node);
      } else {
        memory.waiting[level][threadIdx.x] = node;
        whole = false;
      }
    }
    const int share = lanes::log2(t) - 3;  // log2 of the threads of a row
    const std::uint64_t row = here.first_row(t) + (threadIdx.x >> share);
    if (whole && (threadIdx.x & ((1u << share) - 1)) < 2 && row < t.rows) {
      sum_node& to =
          c.parts.nodes[row * (t.col_blocks >> c.grouped) + (here.col_block >> c.grouped)];
      *(threadIdx.x % 2 == 0 ? &to.signal : &to.noise) = node;
    }
    if (!more) break;
    __syncthreads();
    finished = (finished + 1) & ((1u << c.grouped) - 1);
    here = next;
    walk.advance(c);
    more = !walk.ends(c);
    if (!ahead) {
      memory.stage[0].fetch(t, here);
      strip_stage<From>::wait();
      most = find_maxima(0);
      plain = !__syncthreads_or(most >= top_binade<From>);
      find_scales(here, plain);
      if (more) next = walk.place(c);
      __syncthreads();
    } else {
      if (more) {
        next = walk.place(c);
        strips.fetch(t, next);
      }
      stage ^= 1;
    }
  }
  counts.join(of_thread.counts());
  counts = of_warp(counts);
  if (threadIdx.x % 32 == 0) memory.of_warps[threadIdx.x / 32] = counts;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < block_threads / 32; ++w) counts.join(memory.of_warps[w]);
    c.parts.counts[blockIdx.x] = counts;
  }
#endif
}

template <format_id From, format_id To, shape Shape, int Lanes>
void launch_lanes(const patch_task& t, const statistics_parts& parts, cudaStream_t stream) {
  const auto kernel = counted_tiles_kernel<From, To, Shape, Lanes>;
  const int grouped = counted_group(t);
  const unsigned across = t.col_blocks >> grouped;
  const auto blocks = static_cast<unsigned>(parts.count_count);
  const counted_launch c{t,
                         parts,
                         static_cast<unsigned>(block_elements) >> (t.tile_rows + t.tile_cols),
                         Shape == shape::rows ? (1u << t.lanes) * strip >> t.tile_cols : 0,
                         static_cast<unsigned>(block_count(t) / t.col_blocks),
                         across,
                         blocks / across,
                         blocks % across,
                         grouped};
  const std::size_t shared =
      sizeof(counted_memory<From>) + c.tiles * (sizeof(counted_factor) + sizeof(std::uint32_t));
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared)),
        "quantize: shared memory");
  kernel<<<blocks, block_threads, shared, stream>>>(c);
}

template <format_id From, format_id To>
void launch(const patch_task& t, const statistics_parts& parts, cudaStream_t stream) {
  if (t.tile_rows != 0) return launch_lanes<From, To, shape::squares, 4>(t, parts, stream);
  if (t.lanes == 8) return launch_lanes<From, To, shape::rows, 8>(t, parts, stream);
  launch_lanes<From, To, shape::rows, 0>(t, parts, stream);
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

int counted_group(const patch_task& t) {
  // Patches of squares are narrow: nodes of each would be an eighth of what is written.
  return t.tile_rows == 0 ? 0 : std::min(most_grouped, std::countr_zero(t.col_blocks));
}

std::uint64_t most_counted_blocks(const patch_task& t) {
  constexpr std::uint64_t most = 1024;
  return std::min(block_count(t) >> counted_group(t), most);
}

std::uint64_t counted_blocks(const patch_task& t) {
  int device = 0, processors = 0;
  check(cudaGetDevice(&device), "quantize: device");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
        "quantize: device");
  return std::min(static_cast<std::uint64_t>(processors * resident_counted),
                  most_counted_blocks(t));
}

void launch_counted_tiles(const patch_task& t, format_id from, format_id to,
                          const statistics_parts& parts, cudaStream_t stream) {
  switch (from) {
    case format_id::fp32: return launch_to<format_id::fp32>(t, to, parts, stream);
    case format_id::fp16: return launch_to<format_id::fp16>(t, to, parts, stream);
    default: return launch_to<format_id::bf16>(t, to, parts, stream);
  }
}

}  // namespace samebits::cuda
