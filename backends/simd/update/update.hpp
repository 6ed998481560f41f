// Optimizer steps in SIMD lanes: the functions that each instruction set compiles, and those of each
// backend.
#pragma once

#include <cstdint>

#include "backends/dispatch/calls/optimizer.hpp"

namespace samebits::backends {

/// Functions on contiguous elements. Several threads call them at once. The control register must
/// have its IEEE 754 state.
struct update_lanes_kernel {
  /// The functions of update_kernels of these names.
  decltype(update_kernels::update) update;
  decltype(update_kernels::read_halves) read_halves;
  decltype(update_kernels::write_halves) write_halves;
  decltype(update_kernels::direction) direction;
  decltype(update_kernels::move) move;
  /// words[i] = RN(value of codes[i] * scale)
  void (*rescale)(stored_format format, const std::byte* codes, std::uint32_t scale,
                  std::uint32_t* words, std::int64_t count);
  /// The largest magnitude.
  std::uint32_t (*amax)(const std::uint32_t* words, std::int64_t count);
  /// codes[i] = RN(words[i] * factor) in one of the formats with scales
  void (*scaled_codes)(stored_format format, const std::uint32_t* words, std::uint32_t factor,
                       std::byte* codes, std::int64_t count);
};
extern const update_lanes_kernel avx2_update_lanes;
extern const update_lanes_kernel avx512_update_lanes;

const update_kernels& avx2_update_kernels();
const update_kernels& avx512_update_kernels();

}  // namespace samebits::backends
