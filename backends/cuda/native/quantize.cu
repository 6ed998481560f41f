// Quantization by tiles of one row, and of 64 x 64 and 128 x 128: each thread keeps its elements in
// registers between finding the tile's scale and rounding, so that the matrix is read once.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "backends/cuda/hardware.cuh"
#include "backends/cuda/launch.cuh"
#include "backends/cuda/native/tiles.cuh"
#include "backends/cuda/quantize.hpp"
#include "numerics/scale.hpp"
#include "numerics/tile.hpp"

namespace samebits::cuda {
namespace {

using backends::quantize_call;

/// blockDim.x threads go along a row, blockDim.y rows stand side by side. The threads of a tile are
/// neighbours in a warp.
template <format_id From, format_id To, class Cast>
__global__ void __launch_bounds__(block_threads) row_tiles_kernel(const tiles_task t) {
  if (t.skip != nullptr && *t.skip != 0) return;
  using in_pack = packed<spec_of(From).storage_bits, elements>;
  const std::uint32_t pack = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint64_t step = std::uint64_t{gridDim.y} * blockDim.y;
  const auto inside = [&](std::uint64_t row) { return row < t.rows && pack < t.packs; };
  const auto load = [&](std::uint64_t row) {
    return inside(row) ? load_pack<From>(t, row, pack) : in_pack{};
  };
  std::uint64_t first = std::uint64_t{blockIdx.y} * blockDim.y;
  in_pack next = load(first + threadIdx.y);
  // The bound is that of the block's first row: whole warps stay for the shuffles.
  for (; first < t.rows; first += step) {
    const std::uint64_t row = first + threadIdx.y;
    const in_pack x = next;
    next = load(row + step);  // comes while this row is computed
    tile_amax amax = numerics::nothing_counted;
    if (inside(row)) amax = amax_of<From, elements>(x, t.scale.on_nonfinite);
    for (std::uint32_t apart = t.threads_a_tile / 2; apart > 0; apart /= 2) {
      amax = numerics::joined(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, static_cast<int>(apart)));
    }
    if (!inside(row)) continue;
    const numerics::tile_scale scale = numerics::scale_of<hardware>(spec_of(To), t.scale, amax);
    store_codes<From, Cast>(t, x, scale, row, pack);
    if (t.scales != nullptr && pack % t.threads_a_tile == 0) {
      store_scale(t, scale, row, pack / t.threads_a_tile);
    }
  }
}

/// Tiles of one row by the FP8 conversion; laid out as row_tiles_kernel.
template <format_id From, format_id To, bool Divide>
__global__ void __launch_bounds__(block_threads) converted_rows_kernel(const tiles_task t) {
  if (t.skip != nullptr && *t.skip != 0) return;
  const std::uint32_t pack = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint64_t step = std::uint64_t{gridDim.y} * blockDim.y;
  std::uint64_t first = std::uint64_t{blockIdx.y} * blockDim.y;
  pieces<From> next;
  next.load(t, first + threadIdx.y, pack);
  for (; first < t.rows; first += step) {
    const std::uint64_t row = first + threadIdx.y;
    const pieces<From> x = next;
    next.load(t, row + step, pack);  // comes while this row is computed
    tile_amax amax = x.amax(t, row, pack);
    for (std::uint32_t apart = t.threads_a_tile / 2; apart > 0; apart /= 2) {
      amax = numerics::joined(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, static_cast<int>(apart)));
    }
    const numerics::tile_scale scale = numerics::scale_of<hardware>(spec_of(To), t.scale, amax);
    x.template quantize<To, Divide>(t, scale, row, pack);
    if (t.scales != nullptr && pack % t.threads_a_tile == 0 &&
        pieces<From>::inside(t, row, pack, 0)) {
      store_scale(t, scale, row, pack / t.threads_a_tile);
    }
  }
}

/// Tiles of several rows: a block takes one tile, each thread Rows rows of it.
template <format_id From, format_id To, int Rows>
__global__ void __launch_bounds__(block_threads) square_tiles_kernel(const tiles_task t) {
  if (t.skip != nullptr && *t.skip != 0) return;
  const std::uint32_t rows_a_pass = block_threads / t.threads_a_tile;
  const std::uint32_t pack = blockIdx.x * t.threads_a_tile + threadIdx.x % t.threads_a_tile;
  const std::uint64_t row =
      std::uint64_t{blockIdx.y} * (rows_a_pass * Rows) + threadIdx.x / t.threads_a_tile;
  pieces<From> x[Rows];
#pragma unroll
  for (int r = 0; r < Rows; ++r) x[r].load(t, row + r * rows_a_pass, pack);
  tile_amax amax = numerics::nothing_counted;
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    amax = numerics::joined(amax, x[r].amax(t, row + r * rows_a_pass, pack));
  }
  __shared__ tile_amax warps[block_threads / 32];
  amax = __reduce_max_sync(0xFFFFFFFFu, amax);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = amax;
  __syncthreads();
  for (const tile_amax other : warps) amax = numerics::joined(amax, other);
  const numerics::tile_scale scale = numerics::scale_of<hardware>(spec_of(To), t.scale, amax);
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    x[r].template quantize<To, false>(t, scale, row + r * rows_a_pass, pack);
  }
  if (threadIdx.x == 0 && t.scales != nullptr) store_scale(t, scale, blockIdx.y, blockIdx.x);
}

/// The shape of a launch whose threads go along rows.
struct row_shape {
  dim3 grid, block;
};

row_shape row_shape_of(const tiles_task& t) {
  // A power of two of threads along the row, at least one tile and at most a block.
  const unsigned along = std::clamp(std::bit_ceil(t.packs), t.threads_a_tile, 256u);
  const dim3 block(along, block_threads / along);
  const std::uint64_t steps = (t.rows + block.y - 1) / block.y;
  constexpr std::uint64_t rows_a_thread = 8;  // so that loads run ahead
  const std::uint64_t blocks = (steps + rows_a_thread - 1) / rows_a_thread;
  const dim3 grid((t.packs + along - 1) / along,
                  static_cast<unsigned>(std::min<std::uint64_t>(blocks, 65535)));
  return {grid, block};
}

template <format_id From, format_id To, class Cast>
void launch(const tiles_task& t, cudaStream_t stream) {
  const row_shape shape = row_shape_of(t);
  row_tiles_kernel<From, To, Cast><<<shape.grid, shape.block, 0, stream>>>(t);
}

template <format_id From, format_id To, bool Divide>
void launch_converted(const tiles_task& t, cudaStream_t stream) {
  const row_shape shape = row_shape_of(t);
  converted_rows_kernel<From, To, Divide><<<shape.grid, shape.block, 0, stream>>>(t);
}

/// 64 x 64 and 128 x 128; false where the grid or the rule is another.
template <format_id From, format_id To>
bool try_launch_square(const tiles_task& t, std::uint64_t tile_rows, cudaStream_t stream) {
  const std::uint64_t grid_rows = (t.rows + tile_rows - 1) / tile_rows;
  if (tile_rows != std::uint64_t{t.threads_a_tile} * elements || grid_rows > 65535 ||
      t.cast.round != rounding::nearest_even || t.cast.on_overflow != overflow::saturate ||
      t.scale.math == scale_math::div) {
    return false;
  }
  const dim3 grid((t.packs + t.threads_a_tile - 1) / t.threads_a_tile,
                  static_cast<unsigned>(grid_rows));
  if (tile_rows == 64) {
    square_tiles_kernel<From, To, 1><<<grid, block_threads, 0, stream>>>(t);
  } else if (tile_rows == 128) {
    square_tiles_kernel<From, To, 4><<<grid, block_threads, 0, stream>>>(t);
  } else {
    return false;
  }
  return true;
}

template <format_id From, format_id To>
void launch_cast(const tiles_task& t, cudaStream_t stream) {
  if (t.cast.round == rounding::nearest_even) {
    if (t.scale.math == scale_math::div) {
      return launch_converted<From, To, true>(t, stream);
    }
    if (t.cast.on_overflow == overflow::saturate) {
      return launch_converted<From, To, false>(t, stream);
    }
    return launch<From, To, defined_cast<To, 0>>(t, stream);
  }
  switch (numerics::field_bits(t.random.k)) {
    case 8: return launch<From, To, defined_cast<To, 8>>(t, stream);
    case 16: return launch<From, To, defined_cast<To, 16>>(t, stream);
    default: return launch<From, To, defined_cast<To, 32>>(t, stream);
  }
}

template <format_id From, format_id To>
bool launch_tiles(const quantize_call& call, const tiles_task& t, cudaStream_t stream) {
  const auto tile_rows = static_cast<std::uint64_t>(call.grid.tile_rows);
  if (tile_rows != 1) return try_launch_square<From, To>(t, tile_rows, stream);
  launch_cast<From, To>(t, stream);
  return true;
}

template <format_id From>
bool launch_to(const quantize_call& call, const tiles_task& t, cudaStream_t stream) {
  if (call.to == format_id::e4m3) return launch_tiles<From, format_id::e4m3>(call, t, stream);
  return launch_tiles<From, format_id::e5m2>(call, t, stream);
}

bool aligned(const void* data, std::uint64_t row_bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && row_bytes % 16 == 0;
}

}  // namespace

bool try_launch_tiles(const quantize_call& call, void* stream) {
  const auto& in = call.in;
  const auto& o = call.outputs;
  const std::int64_t width = call.grid.tile_cols;
  if (width < 16 || width > 256 || !std::has_single_bit(static_cast<std::uint64_t>(width))) {
    return false;
  }
  if (in.cols % elements != 0 || in.col_stride != 1 || o.codes.data == nullptr ||
      o.codes.col_stride != 1 || o.codes_transposed.data != nullptr ||
      o.scales_transposed.data != nullptr || in.cols / elements > 0x7FFFFFFF) {
    return false;
  }
  if (call.cast.on_nan != nan_policy::canonical ||
      call.cast.on_overflow == overflow::saturate_finite) {
    return false;
  }
  if (call.scale.math == scale_math::div &&
      (call.cast.round == rounding::stochastic || call.cast.on_overflow != overflow::saturate)) {
    return false;
  }
  if (call.cast.round == rounding::stochastic &&
      (call.random.offset % elements != 0 || call.pitch % elements != 0)) {
    return false;
  }
  const auto in_bytes = static_cast<std::uint64_t>(storage_bytes(in.format));
  const tiles_task t{static_cast<const std::byte*>(in.data),
                     static_cast<std::byte*>(o.codes.data),
                     static_cast<std::byte*>(o.scales.data),
                     static_cast<std::uint64_t>(in.row_stride) * in_bytes,
                     static_cast<std::uint64_t>(o.codes.row_stride),
                     static_cast<std::uint64_t>(o.scales.row_stride) * 4,
                     static_cast<std::uint64_t>(o.scales.col_stride) * 4,
                     static_cast<std::uint64_t>(in.rows),
                     static_cast<std::uint32_t>(in.cols / elements),
                     static_cast<std::uint32_t>(width / elements),
                     call.scale,
                     call.cast,
                     source_of(call.random),
                     call.random.offset,
                     call.pitch,
                     call.skip_if_nonzero};
  if (t.rows == 0 || t.packs == 0) return false;
  const bool one_row = t.rows == 1;
  if (!aligned(t.in, one_row ? 0 : t.in_row_bytes) ||
      !aligned(t.codes, one_row ? 0 : t.codes_row_bytes) ||
      reinterpret_cast<std::uintptr_t>(t.scales) % 4 != 0) {
    return false;
  }
  const auto s = static_cast<cudaStream_t>(stream);
  switch (in.format) {
    case format_id::fp32: return launch_to<format_id::fp32>(call, t, s);
    case format_id::fp16: return launch_to<format_id::fp16>(call, t, s);
    default: return launch_to<format_id::bf16>(call, t, s);
  }
}

}  // namespace samebits::cuda
