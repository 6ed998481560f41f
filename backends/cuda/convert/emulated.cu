// Conversion of matrices by the definition in integers, for cuda-emulated.
//
//   dense_kernel     contiguous, aligned rows of 8, 16 and 32-bit formats, by vectors
//   general_kernel   fp64 and all other layouts, element by element
#include <cstdint>

#include "backends/cuda/common/cells.cuh"
#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/launch.cuh"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/convert/convert_ops.cuh"
#include "backends/cuda/convert/convert_select.cuh"
#include "backends/cuda/convert/dense_launch.cuh"

namespace samebits::cuda {
namespace {

using backends::convert_call;

/// general_call: launch parameters of general_kernel.
struct general_call {
  cells in, out;
  format_spec source;
  format_spec target;
  cast_rule rule;
  random_source random;
  std::uint64_t count, cols;
  std::uint64_t index, pitch;
};

/// Converts any formats, strides and alignment. One element per thread in a grid-stride loop.
__global__ void general_kernel(const general_call c) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < c.count;
       i += step) {
    const std::uint64_t row = i / c.cols;
    const std::uint64_t col = i - row * c.cols;
    random_bits r{0, c.random.k};
    if (c.rule.rounding == rounding::stochastic) {
      r.value = dither_of(c.random, c.index + row * c.pitch + col) >> (32 - c.random.k);
    }
    const std::uint64_t code = load_code(c.in.at(row, col), c.source.storage_bits / 8);
    store_code(c.out.at(row, col), c.target.storage_bits / 8,
               numerics::convert_any(c.source, c.target, c.rule, code, r).code);
  }
}

void launch_general(const convert_call& call, cudaStream_t stream) {
  const general_call c{cells_of(call.in),
                       cells_of(call.out),
                       spec_of(call.in.format),
                       spec_of(call.out.format),
                       call.rule,
                       source_of(call.random),
                       size_of(call.in),
                       static_cast<std::uint64_t>(call.in.cols),
                       call.random.offset,
                       call.pitch};
  launch_kernel("cuda-emulated: convert", general_kernel, grid_for(c.count, block_threads),
                block_threads, 0, stream, c);
}

}  // namespace

void launch_emulated(const convert_call& call, void* stream) {
  const auto dense = [&](const auto& op) {
    return launch_dense("cuda-emulated: convert", op, call, stream);
  };
  const conversion what{call.in.format, call.out.format, call.rule, call.random};
  if (!with_fixed_op(what, dense) && !with_general_op(what, dense))
    launch_general(call, static_cast<cudaStream_t>(stream));
}

}  // namespace samebits::cuda
