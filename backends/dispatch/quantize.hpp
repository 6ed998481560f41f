// What a backend that quantizes brings, and the checked calls it gets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/dispatch/backend.hpp"
#include "numerics/quantize/scale.hpp"
#include "samebits/quantize.hpp"
#include "samebits/quantize_list.hpp"

namespace samebits::backends {

/// Tiles of a matrix [rows, cols], every extent resolved: tile sizes are at least 1, the last tile
/// of a row or column may be cut off.
struct tile_grid {
  std::int64_t tile_rows, tile_cols;  ///< elements of a whole tile
  std::int64_t rows, cols;            ///< tiles
};

/// The grid of checked sizes; throws invalid_argument for a tile_shape that is none.
tile_grid grid_of(std::int64_t rows, std::int64_t cols, const tile_shape& tile);

/// Arguments are checked before a backend sees them; pitch is resolved. Views of outputs that are
/// not wanted have no data. The matrix may be empty: statistics are written all the same.
struct quantize_call {
  const_matrix_view in;
  quantize_outputs outputs;
  format_id to;
  tile_grid grid;
  numerics::scale_rule scale;
  format_id scale_format;         ///< of both kinds of scales: fp32 or e8m0
  const_matrix_view multipliers;  ///< without data unless scales are given; then scale.math is te
  cast_rule cast;
  random_stream random;
  std::uint64_t pitch = 0;
  const std::uint32_t* skip_if_nonzero = nullptr;
  std::byte* workspace = nullptr;  ///< enough, or null
  /// Host backends: room for a scale of each tile, or null; they then allocate before they write.
  numerics::tile_scale* scale_room = nullptr;
};

/// Checks the arguments of quantize(); throws as it does.
quantize_call checked_call(const const_matrix_view& in, const quantize_outputs& outputs,
                           const quantize_options& options);

/// A checked list: calls of one rule, one input format, one code and one scale format.
struct quantize_list_data {
  std::vector<quantize_item> items;
  std::vector<quantize_call> calls;
  std::uint64_t elements = 0;
  memory_space space = memory_space::host;
  int device = -1;  ///< of tensors in device memory, and of their tables there
  /// Of tensors in device memory: what quantizer::prepare() made of the calls.
  std::shared_ptr<const void> on_device = {};
};

struct dequantize_call {
  const_matrix_view codes;
  const_matrix_view scales;
  matrix_view out;
  tile_grid grid;
};

struct quantizer {
  /// Whether it has this quantization; what it lacks is refused by name.
  bool (*has)(const quantize_call& call);
  /// Host backends share the work among where.threads and return when it is done; device backends
  /// enqueue it on where.stream. Asks require_tested() before it writes; on the host only if it
  /// computes in binary32 or binary64 steps.
  void (*quantize)(const quantize_call& call, const executor& where);
  /// Bytes of device memory; null where none is ever needed. Without a workspace in the call a
  /// backend takes it from the stream.
  std::size_t (*workspace)(const quantize_call& call) = nullptr;
  void (*dequantize)(const dequantize_call& call, const executor& where);
  /// Device backends, which share one form of tables: those of a list, and its launch.
  std::shared_ptr<const void> (*prepare)(std::span<const quantize_call> calls) = nullptr;
  void (*quantize_list)(const quantize_list_data& list, const executor& where) = nullptr;
};

}  // namespace samebits::backends
