// Quantization on CUDA: a group of threads for each tile, any tiles, strides and outputs.
#include "backends/cuda/quantize.hpp"

#include <algorithm>
#include <cstdint>

#include "backends/cuda/codes.cuh"
#include "backends/cuda/convert_ops.cuh"
#include "backends/cuda/cuda.hpp"
#include "backends/cuda/error.hpp"
#include "backends/cuda/hardware.cuh"
#include "backends/self_test.hpp"
#include "numerics/decode.hpp"
#include "numerics/encode.hpp"
#include "numerics/scale.hpp"
#include "numerics/tile.hpp"

namespace samebits::cuda {
namespace {

using backends::quantize_call;
using numerics::tile_amax;

/// A matrix of codes in device memory; null where it is not wanted.
struct cells {
  std::byte* data;
  std::uint64_t row_bytes, col_bytes;

  __device__ std::byte* at(std::uint64_t row, std::uint64_t col) const {
    return data + row * row_bytes + col * col_bytes;
  }
};

cells cells_of(const const_matrix_view& v) {
  const auto bytes = static_cast<std::uint64_t>(storage_bytes(v.format));
  return {static_cast<std::byte*>(const_cast<void*>(v.data)),
          static_cast<std::uint64_t>(v.row_stride) * bytes,
          static_cast<std::uint64_t>(v.col_stride) * bytes};
}

struct quantize_task {
  cells in, codes, scales, codes_transposed, scales_transposed;
  format_spec source, target;
  std::uint64_t rows, cols, tile_rows, tile_cols, grid_rows, grid_cols;
  numerics::scale_rule scale;
  cast_rule cast;
  random_source random;
  std::uint64_t index, pitch;
  const std::uint32_t* skip;
};

/// Calls f(row, column) for the elements of a tile, one in `Group` of them for each thread.
template <int Group, class Function>
__device__ void for_each_of_tile(const quantize_task& t, std::uint64_t tile, unsigned lane,
                                 const Function& f) {
  const std::uint64_t row = tile / t.grid_cols * t.tile_rows;
  const std::uint64_t col = tile % t.grid_cols * t.tile_cols;
  const std::uint64_t height = min(t.tile_rows, t.rows - row);
  const std::uint64_t width = min(t.tile_cols, t.cols - col);
  const std::uint64_t count = height * width;
  if (count >> 32 == 0) {  // divisions of 32 bits are several times faster
    for (std::uint64_t i = lane; i < count; i += Group) {
      const std::uint32_t r = static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(width);
      f(row + r, col + (static_cast<std::uint32_t>(i) - r * static_cast<std::uint32_t>(width)));
    }
  } else {
    for (std::uint64_t i = lane; i < count; i += Group) f(row + i / width, col + i % width);
  }
}

/// The maximum over the threads of a group, for each of them.
template <int Group>
__device__ tile_amax group_maximum(tile_amax amax) {
  amax = __reduce_max_sync(0xFFFFFFFFu, amax);
  if constexpr (Group > 32) {
    __shared__ tile_amax warps[Group / 32];
    __syncthreads();  // those of the tile before may still be read
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = amax;
    __syncthreads();
    amax = warps[0];
    for (int i = 1; i < Group / 32; ++i) amax = numerics::joined(amax, warps[i]);
  }
  return amax;
}

template <class Arithmetic, int Group>
__global__ void __launch_bounds__(block_threads) tiles_kernel(const quantize_task t) {
  if (t.skip != nullptr && *t.skip != 0) return;
  const unsigned lane = threadIdx.x % Group;
  const std::uint64_t tiles = t.grid_rows * t.grid_cols;
  const std::uint64_t groups = std::uint64_t{gridDim.x} * (block_threads / Group);
  // All threads of a warp stay in the loop for as long as one of its groups has a tile.
  for (std::uint64_t tile =
           std::uint64_t{blockIdx.x} * (block_threads / Group) + threadIdx.x / Group;
       tile < tiles; tile += groups) {
    const auto element = [&](std::uint64_t row, std::uint64_t col) {
      const std::uint64_t code = load_code(t.in.at(row, col), t.source.storage_bits / 8);
      return numerics::decode<std::uint32_t>(t.source, static_cast<std::uint32_t>(code));
    };
    tile_amax amax = numerics::nothing_counted;
    for_each_of_tile<Group>(t, tile, lane, [&](std::uint64_t row, std::uint64_t col) {
      amax = numerics::joined(amax, numerics::counted(t.scale.on_nonfinite, element(row, col)));
    });
    const numerics::tile_scale scale =
        numerics::scale_of<Arithmetic>(t.target, t.scale, group_maximum<Group>(amax));
    if (lane == 0) {
      const std::uint64_t row = tile / t.grid_cols, col = tile % t.grid_cols;
      if (t.scales.data != nullptr) store_code(t.scales.at(row, col), 4, scale.stored);
      if (t.scales_transposed.data != nullptr) {
        store_code(t.scales_transposed.at(col, row), 4, scale.stored);
      }
    }
    for_each_of_tile<Group>(t, tile, lane, [&](std::uint64_t row, std::uint64_t col) {
      const std::uint32_t y = numerics::scaled<Arithmetic>(t.scale.math, scale, element(row, col));
      const std::uint32_t dither = t.cast.round == rounding::stochastic
                                       ? dither_of(t.random, t.index + row * t.pitch + col)
                                       : 0;
      const std::uint32_t code = numerics::encode<std::uint32_t>(t.target, t.cast, y, dither).code;
      if (t.codes.data != nullptr) *t.codes.at(row, col) = static_cast<std::byte>(code);
      if (t.codes_transposed.data != nullptr) {
        *t.codes_transposed.at(col, row) = static_cast<std::byte>(code);
      }
    });
  }
}

quantize_task task_of(const quantize_call& call) {
  const auto unsigned_of = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  const quantize_outputs& o = call.outputs;
  return {cells_of(call.in),
          cells_of(o.codes),
          cells_of(o.scales),
          cells_of(o.codes_transposed),
          cells_of(o.scales_transposed),
          spec_of(call.in.format),
          spec_of(call.to),
          unsigned_of(call.in.rows),
          unsigned_of(call.in.cols),
          unsigned_of(call.grid.tile_rows),
          unsigned_of(call.grid.tile_cols),
          unsigned_of(call.grid.rows),
          unsigned_of(call.grid.cols),
          call.scale,
          call.cast,
          source_of(call.random),
          call.random.offset,
          call.pitch,
          call.skip_if_nonzero};
}

template <class Arithmetic, int Group>
void launch_tiles(const quantize_task& t, cudaStream_t stream) {
  const std::uint64_t in_a_block = block_threads / Group;
  const std::uint64_t blocks = (t.grid_rows * t.grid_cols + in_a_block - 1) / in_a_block;
  const auto grid = static_cast<unsigned>(std::min<std::uint64_t>(blocks, 1u << 20));
  tiles_kernel<Arithmetic, Group><<<grid, block_threads, 0, stream>>>(t);
}

template <class Arithmetic>
void launch_any_tiles(const quantize_call& call, void* stream) {
  const quantize_task t = task_of(call);
  if (t.rows == 0 || t.cols == 0) return;
  constexpr std::uint64_t most_of_a_warp = 4096;  // elements
  if (t.tile_rows <= most_of_a_warp / t.tile_cols) {
    launch_tiles<Arithmetic, 32>(t, static_cast<cudaStream_t>(stream));
  } else {
    launch_tiles<Arithmetic, block_threads>(t, static_cast<cudaStream_t>(stream));
  }
}

struct dequantize_task {
  cells codes, scales, out;
  format_spec source, target;
  std::uint64_t rows, cols, tile_rows, tile_cols;
};

template <class Arithmetic>
__global__ void dequantize_kernel(const dequantize_task t) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < t.rows * t.cols;
       i += step) {
    const std::uint64_t row = i / t.cols, col = i - row * t.cols;
    const auto s =
        static_cast<std::uint32_t>(load_code(t.scales.at(row / t.tile_rows, col / t.tile_cols), 4));
    const std::uint32_t y = numerics::rescaled<Arithmetic>(
        t.source, static_cast<std::uint32_t>(*t.codes.at(row, col)), s);
    store_code(t.out.at(row, col), t.target.storage_bits / 8,
               numerics::encode<std::uint32_t>(t.target, cast_rule{}, y, 0).code);
  }
}

template <class Arithmetic>
void launch_dequantize(const backends::dequantize_call& call, const executor& where) {
  const auto unsigned_of = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  const dequantize_task t{cells_of(call.codes),
                          cells_of(call.scales),
                          cells_of(call.out),
                          spec_of(call.codes.format),
                          spec_of(call.out.format),
                          unsigned_of(call.codes.rows),
                          unsigned_of(call.codes.cols),
                          unsigned_of(call.grid.tile_rows),
                          unsigned_of(call.grid.tile_cols)};
  if (t.rows == 0 || t.cols == 0) return;
  const std::uint64_t blocks = (t.rows * t.cols + block_threads - 1) / block_threads;
  const auto grid = static_cast<unsigned>(std::min<std::uint64_t>(blocks, 1u << 20));
  dequantize_kernel<Arithmetic>
      <<<grid, block_threads, 0, static_cast<cudaStream_t>(where.stream)>>>(t);
}

/// Statistics are not served yet: the call is refused by name.
bool has_all_but_statistics(const quantize_call& call) {
  return call.outputs.statistics == nullptr;
}

void quantize_emulated(const quantize_call& call, const executor& where) {
  launch_any_tiles<numerics::binary32::integers>(call, where.stream);
  check(cudaGetLastError(), "cuda-emulated: quantize");
}

void dequantize_emulated(const backends::dequantize_call& call, const executor& where) {
  launch_dequantize<numerics::binary32::integers>(call, where);
  check(cudaGetLastError(), "cuda-emulated: dequantize");
}

void quantize_native(const quantize_call& call, const executor& where) {
  backends::require_tested(native, where.stream);
  if (!try_launch_patches(call, where.stream)) launch_any_tiles<hardware>(call, where.stream);
  check(cudaGetLastError(), "cuda-native: quantize");
}

void dequantize_native(const backends::dequantize_call& call, const executor& where) {
  backends::require_tested(native, where.stream);
  launch_dequantize<hardware>(call, where);
  check(cudaGetLastError(), "cuda-native: dequantize");
}

}  // namespace

const backends::quantizer emulated_quantizer = {has_all_but_statistics, quantize_emulated, nullptr,
                                                dequantize_emulated};
const backends::quantizer native_quantizer = {has_all_but_statistics, quantize_native, nullptr,
                                              dequantize_native};

}  // namespace samebits::cuda
