// Quantization: the checked calls that a backend receives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "backends/dispatch/backend.hpp"
#include "numerics/quantize/scale.hpp"
#include "samebits/quantize.hpp"
#include "samebits/quantize_list.hpp"

namespace samebits::backends {

/// Tiles of a matrix [rows, cols] with all extents resolved. Tile sizes are at least 1. The last
/// tile of a row or column may be partial.
struct tile_grid {
  std::int64_t tile_rows, tile_cols;  ///< elements of a full tile
  std::int64_t rows, cols;            ///< number of tiles
};

/// The grid for checked sizes. Throws invalid_argument for an invalid tile_shape.
tile_grid grid_of(std::int64_t rows, std::int64_t cols, const tile_shape& tile);

/// A checked call. pitch is resolved. Unwanted outputs have no data. The matrix may be empty;
/// statistics are written even then.
struct quantize_call {
  const_matrix_view in;
  quantize_outputs outputs;
  format_id to;
  tile_grid grid;
  numerics::scale_settings scale;
  format_id scale_format;  ///< format of both scale outputs: fp32, e8m0 or e4m3
  /// Given inverse scales; no data if none are given. With them scale.rule is te.
  const_matrix_view inverse_scales;
  cast_rule cast;
  random_stream random;
  std::uint64_t pitch = 0;
  const std::uint32_t* skip_if_nonzero = nullptr;
  std::byte* workspace = nullptr;  ///< null, or large enough
  /// Host backends: space for one scale per tile, or null. If null, they allocate before they
  /// write.
  numerics::tile_scale* scale_room = nullptr;
  const_matrix_view tensor_scale = {};  ///< given scale of the tensor; no data if none is given
};

/// The call with call.scale.tensor set, for a rule with two levels whose views lie in host memory.
/// Writes the tensor's scale to its output. `amax` returns the amax of the matrix; it is called unless
/// the scale is given.
quantize_call with_tensor_level(const quantize_call& call,
                                const std::function<numerics::tile_amax()>& amax);

/// Checks the arguments of quantize(). Throws as quantize() does.
quantize_call checked_call(const const_matrix_view& in, const quantize_outputs& outputs,
                           const quantize_options& options);

/// A checked list: all calls share one rule, one input format, one code format and one scale
/// format.
struct quantize_list_data {
  std::vector<quantize_item> items;
  std::vector<quantize_call> calls;
  std::uint64_t elements = 0;
  memory_space space = memory_space::host;
  int device = -1;  ///< device of the tensors and tables in device memory
  /// For tensors in device memory: the result of backend::prepare_list() for the calls.
  std::shared_ptr<const void> on_device = {};
};

/// Whether the tensors of a list have one level of scales: lists on a device have no second one.
inline bool has_one_level(const quantize_list_data& list) {
  return list.calls.empty() || !has_two_levels(list.calls[0].scale.rule);
}

/// A checked dequantization.
struct dequantize_call {
  const_matrix_view codes;
  const_matrix_view scales;
  matrix_view out;
  tile_grid grid;
  second_level level = {};
};

}  // namespace samebits::backends
