// Dequantization: computes RN(value of code * scale), rounded to the output's format. Dense matrices
// of 8-bit codes are written by vectors; all else, of any tile size, strides and alignment, element
// by element.
#include <cstdint>

#include "backends/cuda/common/cells.cuh"
#include "backends/cuda/common/divisor.cuh"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/quantize/general/quantize_task.cuh"
#include "backends/cuda/quantize/quantize.hpp"
#include "backends/cuda/quantize/value_vectors.cuh"
#include "backends/dispatch/visit.hpp"
#include "numerics/bits/encode.hpp"

namespace samebits::cuda {
namespace {

/// Launch parameters of dequantization; format specs of codes, output and scales.
struct dequantize_task {
  cells codes, scales, out;
  format_spec source, target, scale;
  std::uint64_t count;                 ///< elements
  divisor cols, tile_rows, tile_cols;  ///< elements of a row and of a tile
  scale_rule rule;
  cells tensor_scale;

  /// The numbers of the tensor, if the rule has two levels.
  template <class Arithmetic>
  __device__ __forceinline__ numerics::tensor_level level() const {
    if (!has_two_levels(rule)) return {};
    const auto stored = static_cast<std::uint32_t>(load_code(tensor_scale.data, 4));
    return numerics::tensor_level_of<Arithmetic>(rule, source, stored);
  }
  /// The number by which codes at a place are multiplied.
  template <class Arithmetic>
  __device__ __forceinline__ std::uint32_t scale_at(const numerics::tensor_level& tensor,
                                                    std::uint64_t row, std::uint64_t col) const {
    const std::byte* const p = scales.at(tile_rows.quotient(row), tile_cols.quotient(col));
    const auto code = static_cast<std::uint32_t>(load_code(p, scale.storage_bits / 8));
    const auto s = numerics::decode<std::uint32_t>(scale, code);
    return numerics::full_scale<Arithmetic>(rule, tensor, s);
  }
};

/// Dequantizes every element. One element per thread and step.
template <class Arithmetic>
__global__ void dequantize_kernel(const dequantize_task t) {
  const numerics::tensor_level tensor = t.level<Arithmetic>();
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < t.count;
       i += step) {
    const std::uint64_t row = t.cols.quotient(i), col = i - row * t.cols.by;
    const std::uint32_t y =
        numerics::rescaled<Arithmetic>(t.source, static_cast<std::uint32_t>(*t.codes.at(row, col)),
                                       t.scale_at<Arithmetic>(tensor, row, col));
    store_code(t.out.at(row, col), t.target.storage_bits / 8,
               numerics::encode<std::uint32_t>(t.target, cast_rule{}, y, 0).code);
  }
}

/// Dequantizes dense matrices by vectors of 16 bytes of results. Requires: codes of 8 bits; each
/// vector lies in one tile; output aligned to 16 bytes, codes to those of a vector.
/// Shared memory: the numbers of all codes.
template <format_id F>
__global__ void __launch_bounds__(block_threads)
    dequantize_vectors_kernel(const dequantize_task t) {
  constexpr int length = vector_elements_of<F>;
  using code_word = typename samebits::detail::storage_of<length * 8>::type;
  static_assert(block_threads == 256);
  __shared__ std::uint32_t numbers[256];
  numbers[threadIdx.x] = numerics::decode<std::uint32_t>(t.source, threadIdx.x);
  __syncthreads();
  const numerics::tensor_level tensor = t.level<hardware>();
  const std::uint64_t first =
      std::uint64_t{blockIdx.x} * (block_threads * vectors_in_flight) + threadIdx.x;
  code_word words[vectors_in_flight];
  std::uint32_t scales[vectors_in_flight];
#pragma unroll
  for (int k = 0; k < vectors_in_flight; ++k) {
    const std::uint64_t v = first + k * block_threads, i = v * length;
    if (i >= t.count) break;
    words[k] = __ldcs(reinterpret_cast<const code_word*>(t.codes.data) + v);
    const std::uint64_t row = t.cols.quotient(i);
    scales[k] = t.scale_at<hardware>(tensor, row, i - row * t.cols.by);
  }
#pragma unroll
  for (int k = 0; k < vectors_in_flight; ++k) {
    const std::uint64_t v = first + k * block_threads;
    if (v * length >= t.count) break;
    store_numbers<F, 8>(numbers, words[k], scales[k], t.out.data + v * 16);
  }
}

/// Launches the kernel of vectors. False, without a launch, for strides, alignment, codes or tile
/// widths that it does not support.
template <format_id F>
bool launch_vectors(const backends::dequantize_call& call, const dequantize_task& t,
                    cudaStream_t stream) {
  constexpr std::uint64_t length = vector_elements_of<F>;
  const std::uint64_t blocks = (t.count / length - 1) / (block_threads * vectors_in_flight) + 1;
  if (call.out.format != F || t.source.storage_bits != 8 || !is_flat(call.codes) ||
      !is_flat(call.out) || t.cols.by % length != 0 || t.tile_cols.by % length != 0 ||
      !is_aligned(call.out.data, 16) || !is_aligned(call.codes.data, length) ||
      blocks > 0x7FFFFFFF) {
    return false;
  }
  launch_kernel("dequantize", dequantize_vectors_kernel<F>, static_cast<unsigned>(blocks),
                block_threads, 0, stream, t);
  return true;
}

}  // namespace

void enqueue_dequantize(const backends::dequantize_call& call, arithmetic by, void* on) {
  const auto stream = static_cast<cudaStream_t>(on);
  const dequantize_task t{
      cells_of(call.codes),         cells_of(call.scales),    cells_of(call.out),
      spec_of(call.codes.format),   spec_of(call.out.format), spec_of(call.scales.format),
      size_of(call.codes),          divisor(call.codes.cols), divisor(call.grid.tile_rows),
      divisor(call.grid.tile_cols), call.level.scale,         cells_of(call.level.tensor_scale)};
  if (t.count == 0) return;
  bool done = false;
  if (by == arithmetic::hardware) {
    backends::visit_quantized(call.out.format,
                              [&]<format_id F>() { done = launch_vectors<F>(call, t, stream); });
  }
  if (done) return;
  with_arithmetic(by, [&](auto policy) {
    launch_kernel("dequantize", dequantize_kernel<decltype(policy)>,
                  grid_for(t.count, block_threads), block_threads, 0, stream, t);
  });
}

}  // namespace samebits::cuda
