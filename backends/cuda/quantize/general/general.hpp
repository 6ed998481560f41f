// Launches of the general quantization kernels (any tile size, strides and outputs).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/calls/quantize.hpp"
#include "numerics/quantize/scale.hpp"
#include "numerics/quantize/tile.hpp"

namespace samebits::cuda {

/// Bytes of device memory that launch_general() needs; 0 where one pass is enough.
std::size_t general_workspace(const backends::quantize_call& call);

/// Enqueues any quantization. Arithmetic, the source of binary32 products and quotients, is
/// numerics::by_definition or hardware. `workspace` has general_workspace(call) bytes.
template <class Arithmetic>
void launch_general(const backends::quantize_call& call, std::byte* workspace, cudaStream_t stream);

/// An amax and a scale for each tile, in device memory: both arrays are aligned to 16 bytes.
struct tile_memory {
  numerics::tile_amax* amaxes;
  numerics::tile_scale* scales;

  tile_memory(std::byte* memory, std::uint64_t tiles)
      : amaxes(reinterpret_cast<numerics::tile_amax*>(memory)),
        scales(reinterpret_cast<numerics::tile_scale*>(amaxes + whole(tiles))) {}
  [[nodiscard]] static std::size_t bytes(std::uint64_t tiles) {
    return whole(tiles) * (sizeof *amaxes + sizeof *scales);
  }

 private:
  static std::uint64_t whole(std::uint64_t tiles) { return (tiles + 3) / 4 * 4; }
};
/// Enqueues no_amax for each of `count` amaxes.
void clear_amaxes(numerics::tile_amax* amaxes, std::uint64_t count, cudaStream_t stream);

/// Computes the scale of a matrix with one scale, from its amax or from the call's inverse scale,
/// by the GPU's own arithmetic. Stores the scale in memory.scales and in the call's outputs.
void launch_one_scale(const backends::quantize_call& call, const tile_memory& memory,
                      cudaStream_t stream);

}  // namespace samebits::cuda
