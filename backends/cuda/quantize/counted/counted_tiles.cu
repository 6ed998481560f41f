// Quantization in one pass over the matrix, with statistics: by the FP8 conversion, and the leaves
// of the sum trees of contract §6 joined up to the width of a few patches.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/quantize/counted/counted_codes.cuh"
#include "backends/cuda/quantize/counted/counted_memory.cuh"
#include "backends/cuda/quantize/tiles/block_tiles.cuh"

namespace samebits::cuda {
namespace {

/// Blocks that a multiprocessor holds; each of their warps takes patch after patch.
template <format_id From>
inline constexpr int resident_counted = is_half<From> ? 2 : 1;

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

/// Patch after patch: while one is rounded the next is on its way from memory.
template <format_id From, format_id To, shape Shape, int Tile, int Lanes>
__global__ void __launch_bounds__(block_threads, resident_counted<From>)
    counted_tiles_kernel(const __grid_constant__ counted_launch c) {
#if __CUDA_ARCH__ >= 890
  const patch_task& t = c.t;
  if (t.skip != nullptr && *t.skip != 0) return;
  using tiles = lane_tiles<Tile>;
  using stage_type = patch_stage<From>;
  extern __shared__ __align__(1024) std::byte shared[];
  auto& memory = *reinterpret_cast<counted_memory<From, Shape>*>(shared);
  if (blockIdx.x == 0 && threadIdx.x == 0) *c.parts.arrived = 0;
  const unsigned warp = threadIdx.x / 32;
  using block_type = block_maxima<From, Tile, tiles::most>;
  if (Shape == shape::squares && warp == 0) {
    for (auto& of_patch : memory.maxima) block_type{of_patch}.clear();
    if (threadIdx.x == 0) memory.posted.init(warps_of_block * block_type::speakers);
  }
  if constexpr (scale_table<From>::exists) memory.scales.fill(spec_of(To), t.scale);
  __syncthreads();
  auto table = static_cast<unsigned>(__cvta_generic_to_shared(&memory.scales));
  asm volatile("" : "+r"(table));

  using place = warp_place<Shape, Lanes>;
  using walk_type = group_walk<Shape, Lanes>;
  constexpr unsigned apart = sizeof memory.patch[0];
  static_assert(counted_memory<From, Shape>::stages == 2);
  stage_type stage(memory.patch[0][warp]);
  unsigned to_other = apart;  // from the stage to the other one
  strip_counts<From> of_thread;
  element_counts counts;
  const std::uint32_t width = lane_cols << place::lanes(c);
  const unsigned all_rows = halves * place::lines(c);

  // What is to be fetched next, from where on, and how many of its group are left.
  walk_type ahead(c);
  const std::byte* source = nullptr;
  unsigned rows_ahead = 0, left_ahead = 0;
  const auto start_fetches = [&] {
    if (ahead.ends(c)) return;
    const place at = ahead.place(c, 0);
    source = stage_type::source(c, at);
    rows_ahead = at.inside(c);
    left_ahead = c.group_patches;
  };
  const auto fetch_next = [&](const stage_type& to) {
    if (left_ahead != 0) {
      to.template fetch<Shape, Lanes>(c, source, rows_ahead);
      source += width * stage_type::element_bytes;
      if (--left_ahead == 0) {
        ahead.advance(c);
        start_fetches();
      }
    }
    stage_type::commit();
  };

  // What is rounded: its patch of the group, and where its codes and scales go.
  walk_type walk(c);
  unsigned left = 0;  // patches of the group
  const auto here = [&] { return walk.place(c, c.group_patches - left); };
  std::byte *codes_to = nullptr, *scale_to = nullptr;
  bool whole = false, stores = false;
  auto ring = static_cast<unsigned>(
      __cvta_generic_to_shared(&memory.nodes[warp].of_patch[0][threadIdx.x % 32]));
  const auto start_group = [&] {
    const place at = walk.place(c, 0);
    left = c.group_patches;
    codes_to = stage_type::target(c, at);
    whole = c.wide_codes && at.inside(c) == all_rows;
    if constexpr (Tile != 0) {
      const std::uint64_t row = at.row(c, Shape == shape::rows && threadIdx.x % 2 != 0 ? 1 : 0);
      stores = c.plain_scales && stores_scale<Shape, Tile>() && row < t.rows;
      scale_to = t.scales + (row >> t.tile_rows) * t.scales_row_bytes +
                 (at.col(c) >> t.tile_cols) * t.scales_col_bytes;
    }
  };

  // The patch whose factors are known; `found` its thread's largest magnitude.
  std::uint32_t most = 0, found = 0;
  bool plain = true;
  lane_maxima<From, tiles::most> maxima;
  unsigned posts = 0;  // modulo 6: the buffer, and the barrier's turn
  const auto find_maxima = [&](const stage_type& in) {
    maxima = maxima_of_lane<From, Tile>(c, in);
    found = maxima.of_all();
    if constexpr (Shape == shape::squares) {
      // All have taken what they need of the patch before the last.
      if (warp == 0) block_type{memory.maxima[(posts + 1) % 3]}.clear();
      block_type{memory.maxima[posts % 3]}.post(c, maxima);
      __syncwarp();
      if (threadIdx.x % 32 < block_type::speakers) memory.posted.arrive();
    }
  };
  const auto find_factors = [&](const place& at) {
    most = found;
    const block_type of_block{memory.maxima[posts % 3]};
    if constexpr (Shape == shape::rows) {
      maxima.join_lanes(0, tiles::lanes(c));
      if (!tiles::two(c)) maxima.share();
    } else {
      memory.posted.wait(posts & 1);
      posts = posts == 5 ? 0 : posts + 1;
      maxima = of_block.take(c);
    }
    plain = true;
    if constexpr (scale_table<From>::exists) {
      // All warps of a block go by the definition, or none.
      bool usual = Shape == shape::rows || Tile != 0 || of_block.of_all() < top_binade<From>;
#pragma unroll
      for (const auto& of_tile : maxima.w) usual = usual && both_within(of_tile[0], c.usual);
      if (__all_sync(0xFFFFFFFFu, usual)) {
        return factors_by<From, To, Shape, Tile, Lanes>(
            c, at, maxima, {scale_to, stores}, [&](std::uint32_t code) {
              return scale_table<From>::scale(table,
                                              numerics::decode<std::uint32_t>(spec_of(From), code));
            });
      }
    }
    if constexpr (Shape == shape::rows) {
      plain = !__any_sync(0xFFFFFFFFu, reaches<From>(most, top_binade<From>));
      if (!plain) {
        maxima = counted_maxima_of_lane<From, Shape, Tile, Lanes>(c, at);
        maxima.join_lanes(0, tiles::lanes(c));
        if (!tiles::two(c)) maxima.share();
      }
    } else {
      plain = !__any_sync(0xFFFFFFFFu, of_block.of_all() >= top_binade<From>);
      if (!plain) {
        __syncthreads();
        if (warp == 0) of_block.clear();
        __syncthreads();
        of_block.post(c, counted_maxima_of_lane<From, Shape, Tile, Lanes>(c, at));
        __syncthreads();
        maxima = of_block.take(c);
      }
    }
    return any_factors<From, To, Shape, Tile, Lanes>(c, at, maxima, plain, {scale_to, stores});
  };

  if (!walk.ends(c)) {
    start_fetches();
    fetch_next(stage);
    bool more = left_ahead != 0;
    stage.move(to_other);
    fetch_next(stage);
    stage.move(-to_other);
    start_group();
    stage_type::template wait<1>();
    find_maxima(stage);
    auto factors = find_factors(here());
#pragma unroll 1
    while (true) {
      const auto maxima_of_next = [&] {
        if (Shape == shape::squares && more) {
          stage_type::template wait<0>();
          stage_type next = stage;
          next.move(to_other);
          find_maxima(next);
        }
      };
      if (plain) {
        coded_strips<From, To, Shape, Tile, Lanes>(c, here(), whole, factors, stage, most,
                                                   of_thread, maxima_of_next);
      } else {
        maxima_of_next();
        defined_strips<From, To, Shape, Tile, Lanes>(c, here(), factors, stage, counts);
      }
      __syncwarp();
      if (whole) {
        stage.template store<Shape, Lanes>(c, codes_to);
      } else if (t.codes != nullptr) {
        stage_type::template store_any<Shape, Lanes>(c, here(), stage.codes);
      }
      asm volatile("st.shared.f64 [%0], %1;" ::"r"(ring), "d"(stage.joined_lanes()));
      __syncwarp();
      const bool last = !more;
      more = left_ahead != 0;
      fetch_next(stage);
      codes_to += width;
      scale_to += c.scale_step;
      ring += sizeof memory.nodes[warp].of_patch[0];
      if (--left == 0) {
        const int across = place::lanes(c) - least_lanes;
        const double node = memory.nodes[warp].joined(across, c.grouped);
        __syncwarp();
        // Of half lane / 2 % 2, noise in odd lanes.
        const std::uint64_t row = walk.place(c, 0).row(c, static_cast<int>(threadIdx.x >> 1 & 1));
        if ((threadIdx.x % 32 >> 2 & ((1u << across) - 1)) == 0 && row < t.rows) {
          sum_node& to = c.parts.nodes[row * c.across + walk.group];
          *(threadIdx.x % 2 == 0 ? &to.signal : &to.noise) = node;
        }
        if (last) break;
        walk.advance(c);
        start_group();
        ring -= left * sizeof memory.nodes[warp].of_patch[0];
      }
      stage.move(to_other);
      to_other = -to_other;
      if constexpr (Shape == shape::rows) {
        stage_type::template wait<1>();
        find_maxima(stage);
      }
      factors = find_factors(here());
    }
  }
  counts.join(of_thread.counts());
  counts = of_warp(counts);
  if (threadIdx.x % 32 == 0) memory.of_warps[warp] = counts;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned w = 1; w < warps_of_block; ++w) counts.join(memory.of_warps[w]);
    c.parts.counts[blockIdx.x] = counts;
  }
#endif
}

/// Patches of a launch below each other: of warps for rows, of blocks for squares.
std::uint64_t patch_rows(const patch_task& t) {
  const std::uint64_t rows = t.tile_rows == 0 ? 64u >> (t.lanes - 2) : 128;
  return (t.rows + rows - 1) / rows;
}

template <format_id From, format_id To, shape Shape, int Tile, int Lanes>
void launch_lanes(const patch_task& t, const statistics_parts& parts, cudaStream_t stream) {
  const auto kernel = counted_tiles_kernel<From, To, Shape, Tile, Lanes>;
  const int grouped = counted_group(t);
  const unsigned across = t.col_blocks >> grouped;
  const auto blocks = static_cast<unsigned>(parts.count_count);
  const unsigned walkers = blocks * (Shape == shape::rows ? warps_of_block : 1);
  const bool wide_codes = t.codes != nullptr &&
                          reinterpret_cast<std::uintptr_t>(t.codes) % 16 == 0 &&
                          t.codes_row_bytes % 16 == 0;
  numerics::magnitude_range usual{};
  if constexpr (is_half<From>) {
    usual = numerics::codes_within(From, numerics::plain_amaxes(t.scale));
    usual.most = std::min(usual.most, top_binade<From>);
  }
  const counted_launch c{t,
                         parts,
                         t.lanes - 2,
                         static_cast<unsigned>(patch_rows(t)),
                         across,
                         walkers / across,
                         walkers % across,
                         grouped,
                         1u << grouped,
                         usual,
                         wide_codes,
                         !t.byte_scales && t.scales != nullptr && t.scales_transposed == nullptr,
                         (std::uint64_t{strip} << t.lanes >> t.tile_cols) * t.scales_col_bytes};
  constexpr std::size_t memory = sizeof(counted_memory<From, Shape>);
  allow_shared_memory("cuda-native: quantize", kernel, memory);
  launch_kernel("cuda-native: quantize", kernel, blocks, block_threads, memory, stream, c);
}

template <format_id From, format_id To>
void launch(const patch_task& t, const statistics_parts& parts, cudaStream_t stream) {
  const bool rows = t.tile_rows == 0;
  // Tiles of 128 columns have kernels of their own.
  if constexpr (is_half<From>) {
    if (t.tile_cols == 7 && !rows) {
      return launch_lanes<From, To, shape::squares, 7, 2>(t, parts, stream);
    }
    if (t.tile_cols == 7 && t.lanes == 7) {
      return launch_lanes<From, To, shape::rows, 7, 5>(t, parts, stream);
    }
  }
  if (rows) {
    launch_lanes<From, To, shape::rows, 0, 0>(t, parts, stream);
  } else {
    launch_lanes<From, To, shape::squares, 0, 2>(t, parts, stream);
  }
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
  return std::min(t.tile_rows == 0 ? most_grouped<shape::rows> : most_grouped<shape::squares>,
                  std::countr_zero(t.col_blocks));
}

std::uint64_t most_counted_blocks(const patch_task& t) {
  constexpr std::uint64_t most = 1024;
  const std::uint64_t groups = patch_rows(t) * (t.col_blocks >> counted_group(t));
  const std::uint64_t walkers = t.tile_rows == 0 ? warps_of_block : 1;
  return std::min((groups + walkers - 1) / walkers, most);
}

std::uint64_t counted_blocks(const patch_task& t) {
  int device = 0, processors = 0;
  check(cudaGetDevice(&device), "quantize: device");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
        "quantize: device");
  return std::min(static_cast<std::uint64_t>(processors) * 2, most_counted_blocks(t));
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
