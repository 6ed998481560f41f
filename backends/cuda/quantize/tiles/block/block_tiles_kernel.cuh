// The kernel of launch_block_tiles(), and the choice of its cast and tile shape for one input format.
//
// One block per block tile of 16384 elements, from 128 rows of 128 elements to 8 rows of 2048
// elements.
//
// Each thread holds 8 rows of 8 elements in registers from the load to the store. Meanwhile the
// block finds the scales of the tiles through shared memory. Requires contiguous rows and tiles of
// 1 x 16 to 1 x 256, 16 x 16 to 128 x 128 or 16 x 1 to 128 x 1, each a power of two.
//
// Cost: one read of each element and one write of each code. Block tiles that are rounded by the
// definition read their elements a second time. On an H200, bf16 to e4m3 reads and writes 1.01 to
// 1.03 times as many bytes per second as a device-to-device copy (docs/benchmarks.md).
#pragma once

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/quantize/tiles/block/block_quantize.cuh"
#include "backends/cuda/quantize/tiles/tile_launches.cuh"

namespace samebits::cuda {
namespace block_tiles {

/// Quantizes block tile blockIdx.x. `known`: the scale that all tiles share, or null.
template <format_id From, format_id To, class Cast, shape Shape, access Access>
__global__ void __launch_bounds__(block_threads, resident_blocks<From>)
    block_tiles_kernel(const __grid_constant__ tile_task t, const tile_scale* const known) {
#if __CUDA_ARCH__ >= 890
  if (t.skip != nullptr && *t.skip != 0) return;
  __shared__ block_memory<Shape> memory;
  quantize_block<From, To, Cast, Shape, Access>(t, blockIdx.x, memory, known);
#endif
}

template <format_id From, format_id To, class Cast, access Access = access::vectors>
void launch_cast(const tile_task& t, const tile_scale* known, cudaStream_t stream) {
  const std::size_t shared = t.codes_transposed.data != nullptr ? sizeof(transposed_codes) : 0;
  visit_shape(t.tile_rows, t.tile_cols, [&]<shape Shape>() {
    // Stochastic rounding with random words supports only tiles of one row; route.cu sends other
    // tiles to the definition.
    if constexpr (Cast::field == 0 || Shape == shape::rows) {
      launch_kernel("cuda-native: quantize", block_tiles_kernel<From, To, Cast, Shape, Access>,
                    static_cast<unsigned>(block_count(t)), block_threads, shared, stream, t, known);
    }
  });
}

template <format_id From, format_id To>
void launch(const tile_task& t, const tile_scale* known, cudaStream_t stream) {
  const bool is_stochastic = t.cast.rounding == rounding::stochastic,
             divided = t.scale.rule == scale_rule::div;
  if (t.by_definition || (!t.aligned && (is_stochastic || divided || !t.saturates))) {
    return launch_cast<From, To, defined_cast, access::elements>(t, known, stream);
  }
  if (!t.aligned)
    return launch_cast<From, To, product_cast<To>, access::elements>(t, known, stream);
  if (divided) return launch_cast<From, To, quotient_cast<To>>(t, known, stream);
  if (!is_stochastic && !t.saturates)
    return launch_cast<From, To, finite_product_cast<To>>(t, known, stream);
  if (!is_stochastic) return launch_cast<From, To, product_cast<To>>(t, known, stream);
  switch (numerics::field_bits(t.random.k)) {
    case 8: return launch_cast<From, To, stochastic_cast<To, 8>>(t, known, stream);
    case 16: return launch_cast<From, To, stochastic_cast<To, 16>>(t, known, stream);
    default: return launch_cast<From, To, stochastic_cast<To, 32>>(t, known, stream);
  }
}

}  // namespace block_tiles

template <format_id From>
void launch_block_tiles_from(const tile_task& t, format_id to, cudaStream_t stream,
                             const tile_scale* known) {
  if (to == format_id::e4m3) return block_tiles::launch<From, format_id::e4m3>(t, known, stream);
  block_tiles::launch<From, format_id::e5m2>(t, known, stream);
}

}  // namespace samebits::cuda
