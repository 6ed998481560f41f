// quantize_task: the launch parameters of the general quantization kernels, which support any tile
// size, strides and outputs.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/cells.cuh"
#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/convert/convert_ops.cuh"
#include "backends/dispatch/calls/quantize.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/quantize/four_over_six.hpp"
#include "numerics/quantize/scale.hpp"
#include "numerics/quantize/tile.hpp"

namespace samebits::cuda {

using numerics::tile_amax;

/// Launch parameters of the general kernels, and the loads and stores of one element or scale.
struct quantize_task {
  cells in, codes, scales, codes_transposed, scales_transposed;
  cells inverse_scales;  ///< inverse scales given by the caller, or null
  cells tensor_scale;    ///< the tensor's scale given by the caller, or null
  cells tensor_scale_out;
  /// The numbers of the tensor, for a scale rule with two levels; else null.
  const numerics::tensor_level* tensor;
  format_id scale_format;
  format_spec source, target;
  std::uint64_t rows, cols, tile_rows, tile_cols, grid_rows, grid_cols;
  int row_shift, col_shift;  ///< log2 of tile_rows and tile_cols; 63 if one tile spans the extent
  numerics::scale_settings scale;
  cast_rule cast;
  random_source random;
  std::uint64_t index, pitch;
  const std::uint32_t* skip;

  __device__ bool skipped() const { return skip != nullptr && *skip != 0; }
  /// Number of the tile that holds an element; tiles are numbered in row-major order.
  __device__ std::uint64_t tile_of(std::uint64_t row, std::uint64_t col) const {
    return (row >> row_shift) * grid_cols + (col >> col_shift);
  }
  /// An input element as binary32 bits.
  __device__ std::uint32_t element(std::uint64_t row, std::uint64_t col) const {
    const std::uint64_t code = load_code(in.at(row, col), source.storage_bits / 8);
    return numerics::decode<std::uint32_t>(source, static_cast<std::uint32_t>(code));
  }
  /// The random bits of an element; 0 unless rounding is stochastic.
  __device__ std::uint32_t dither(std::uint64_t row, std::uint64_t col) const {
    if (cast.rounding != rounding::stochastic) return 0;
    return dither_of(random, index + row * pitch + col);
  }
  __device__ bool has_given_scales() const { return inverse_scales.data != nullptr; }
  /// The scale of tile (row, col): from the tile's amax, or from the inverse scale given by the
  /// caller.
  template <class Arithmetic>
  __device__ numerics::tile_scale scale_of_tile(std::uint64_t row, std::uint64_t col,
                                                tile_amax amax) const {
    if (has_given_scales()) {
      return numerics::scale_of_inverse<Arithmetic>(
          static_cast<std::uint32_t>(load_code(inverse_scales.at(row, col), 4)));
    }
    if (tensor == nullptr) return numerics::scale_of<Arithmetic>(target, scale, amax);
    numerics::scale_settings settings = scale;
    settings.tensor = *tensor;
    if (!is_four_over_six(scale.rule)) {
      return numerics::any_scale_of<Arithmetic>(target, settings, amax);
    }
    const std::uint64_t first_row = row * tile_rows, first_col = col * tile_cols;
    return numerics::four_over_six_scale<Arithmetic>(
        settings, target, amax, static_cast<int>(min(tile_rows, rows - first_row)),
        static_cast<int>(min(tile_cols, cols - first_col)), tile_cols == 1,
        [&](int r, int c) { return element(first_row + r, first_col + c); });
  }
  /// The number by which the values of a tile's codes are multiplied.
  template <class Arithmetic>
  __device__ std::uint32_t full_scale(std::uint32_t dequantization_scale) const {
    if (tensor == nullptr) return dequantization_scale;
    return numerics::full_scale<Arithmetic>(scale.rule, *tensor, dequantization_scale);
  }
  __device__ void store_scale(std::uint64_t row, std::uint64_t col,
                              std::uint32_t dequantization_scale) const {
    const std::uint32_t code = numerics::scale_code(scale_format, dequantization_scale);
    const int scale_bytes = storage_bytes(scale_format);
    if (scales.data != nullptr) store_code(scales.at(row, col), scale_bytes, code);
    if (scales_transposed.data != nullptr) {
      store_code(scales_transposed.at(col, row), scale_bytes, code);
    }
  }
  __device__ void store_element(std::uint64_t row, std::uint64_t col, std::uint32_t code) const {
    if (codes.data != nullptr) *codes.at(row, col) = static_cast<std::byte>(code);
    if (codes_transposed.data != nullptr) {
      *codes_transposed.at(col, row) = static_cast<std::byte>(code);
    }
  }
};

/// The launch parameters of a checked call.
inline quantize_task task_of(const backends::quantize_call& call) {
  const auto unsigned_of = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  const auto shift = [](std::int64_t size, std::int64_t tiles) {
    return tiles <= 1 ? 63 : std::countr_zero(static_cast<std::uint64_t>(size));
  };
  const quantize_outputs& o = call.outputs;
  return {cells_of(call.in),
          cells_of(o.codes),
          cells_of(o.scales),
          cells_of(o.codes_transposed),
          cells_of(o.scales_transposed),
          cells_of(call.inverse_scales),
          cells_of(call.tensor_scale),
          cells_of(o.tensor_scale),
          nullptr,
          call.scale_format,
          spec_of(call.in.format),
          spec_of(call.to),
          unsigned_of(call.in.rows),
          unsigned_of(call.in.cols),
          unsigned_of(call.grid.tile_rows),
          unsigned_of(call.grid.tile_cols),
          unsigned_of(call.grid.rows),
          unsigned_of(call.grid.cols),
          shift(call.grid.tile_rows, call.grid.rows),
          shift(call.grid.tile_cols, call.grid.cols),
          call.scale,
          call.cast,
          source_of(call.random),
          call.random.offset,
          call.pitch,
          call.skip_if_nonzero};
}

/// Calls f(row, column) for elements [begin, end) of a tile, in the tile's row-major order. Each of
/// `Group` threads (lane 0 to Group - 1) handles every Group-th element.
template <int Group, class Function>
__device__ void for_each_of_tile(const quantize_task& t, std::uint64_t tile, std::uint64_t begin,
                                 std::uint64_t end, unsigned lane, const Function& f) {
  const std::uint64_t row = tile / t.grid_cols * t.tile_rows;
  const std::uint64_t col = tile % t.grid_cols * t.tile_cols;
  const std::uint64_t height = min(t.tile_rows, t.rows - row);
  const std::uint64_t width = min(t.tile_cols, t.cols - col);
  const std::uint64_t count = min(end, height * width);
  if (count >> 32 == 0) {  // 32-bit divisions are several times faster
    for (std::uint64_t i = begin + lane; i < count; i += Group) {
      const std::uint32_t r = static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(width);
      f(row + r, col + (static_cast<std::uint32_t>(i) - r * static_cast<std::uint32_t>(width)));
    }
  } else {
    for (std::uint64_t i = begin + lane; i < count; i += Group) f(row + i / width, col + i % width);
  }
}

}  // namespace samebits::cuda
