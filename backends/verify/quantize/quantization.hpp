// Quantizations and dequantizations as compared calls.
#pragma once

#include <array>
#include <cstddef>

#include "backends/dispatch/calls/quantize.hpp"
#include "backends/verify/call.hpp"

namespace samebits::backends::verification {

/// All tile shapes: {1, G}, {G, 1} and {G, G}, for several G and for 0, the whole extent.
const std::array<tile_shape, tile_count>& all_tiles();

/// Outputs of a quantization, in the order of their layouts in quantization::out.
enum output : std::size_t { codes, scales, codes_transposed, scales_transposed, output_count };

/// A quantization of the input. Outputs with 0 rows are not wanted.
struct quantization {
  format_id to;
  int tile;  ///< index in all_tiles()
  numerics::scale_settings scale;
  cast_rule cast;
  random_stream random;
  placement in;
  std::array<placement, output_count> out;
  bool counts = false;  ///< whether statistics are wanted
};
checked_call call_of(const quantization& q, format_id from);

/// A dequantization: codes, and scales as the second input, to the format `to`.
struct dequantization {
  format_id from;
  format_id to;
  int tile;
  std::int64_t rows;
  std::int64_t cols;
};
checked_call call_of(const dequantization& d);

}  // namespace samebits::backends::verification
