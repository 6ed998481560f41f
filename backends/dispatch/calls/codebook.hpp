// Codebooks: the checked calls that a backend receives. No array of blocks is empty.
#pragma once

#include <cstdint>
#include <span>

#include "backends/dispatch/backend.hpp"
#include "samebits/codebook.hpp"

namespace samebits::backends {

struct quantize_blocks_call {
  const_matrix_view in;  ///< without gaps
  codebook_options options;
  std::span<std::uint8_t> codes;
  std::span<float> absmax;
};

struct dequantize_blocks_call {
  std::span<const std::uint8_t> codes;
  /// The absmaxes are absmax.absmax; with double quantization absmax.codes is not empty.
  quantized_absmax absmax;
  codebook_options options;
  matrix_view out;  ///< without gaps
};

}  // namespace samebits::backends
