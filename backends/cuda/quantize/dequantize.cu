// Dequantization: computes RN(value of code * scale), rounded to the output's format. One thread
// per element, in a grid-stride loop. Any tile size, strides and alignment.
#include <algorithm>
#include <cstdint>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/quantize/general/quantize_task.cuh"
#include "backends/cuda/quantize/quantize.hpp"
#include "numerics/bits/encode.hpp"

namespace samebits::cuda {
namespace {

/// Launch parameters of dequantize_kernel; format specs of codes, output and scales.
struct dequantize_task {
  cells codes, scales, out;
  format_spec source, target, scale;
  std::uint64_t rows, cols, tile_rows, tile_cols;
  scale_rule rule;
  cells tensor_scale;
};

/// Dequantizes every element. One element per thread and step.
template <class Arithmetic>
__global__ void dequantize_kernel(const dequantize_task t) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < t.rows * t.cols;
       i += step) {
    const std::uint64_t row = i / t.cols, col = i - row * t.cols;
    const auto scale = static_cast<std::uint32_t>(
        load_code(t.scales.at(row / t.tile_rows, col / t.tile_cols), t.scale.storage_bits / 8));
    const auto s = numerics::decode<std::uint32_t>(t.scale, scale);
    std::uint32_t d = s;
    if (has_two_levels(t.rule)) {
      const auto stored = static_cast<std::uint32_t>(load_code(t.tensor_scale.data, 4));
      d = numerics::full_scale<Arithmetic>(
          t.rule, numerics::tensor_level_of<Arithmetic>(t.rule, t.source, stored), s);
    }
    const std::uint32_t y = numerics::rescaled<Arithmetic>(
        t.source, static_cast<std::uint32_t>(*t.codes.at(row, col)), d);
    store_code(t.out.at(row, col), t.target.storage_bits / 8,
               numerics::encode<std::uint32_t>(t.target, cast_rule{}, y, 0).code);
  }
}

template <class Arithmetic>
void launch_dequantize(const backends::dequantize_call& call, cudaStream_t stream) {
  const auto unsigned_of = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  const dequantize_task t{cells_of(call.codes),
                          cells_of(call.scales),
                          cells_of(call.out),
                          spec_of(call.codes.format),
                          spec_of(call.out.format),
                          spec_of(call.scales.format),
                          unsigned_of(call.codes.rows),
                          unsigned_of(call.codes.cols),
                          unsigned_of(call.grid.tile_rows),
                          unsigned_of(call.grid.tile_cols),
                          call.level.scale,
                          cells_of(call.level.tensor_scale)};
  if (t.rows == 0 || t.cols == 0) return;
  const std::uint64_t blocks = (t.rows * t.cols + block_threads - 1) / block_threads;
  const auto grid = static_cast<unsigned>(std::min<std::uint64_t>(blocks, 1u << 20));
  launch_kernel("dequantize", dequantize_kernel<Arithmetic>, grid, block_threads, 0, stream, t);
}

}  // namespace

void enqueue_dequantize_emulated(const backends::dequantize_call& call, void* stream) {
  launch_dequantize<numerics::by_definition>(call, static_cast<cudaStream_t>(stream));
}

void enqueue_dequantize_native(const backends::dequantize_call& call, void* stream) {
  launch_dequantize<hardware>(call, static_cast<cudaStream_t>(stream));
}

}  // namespace samebits::cuda
