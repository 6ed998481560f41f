// Scale layouts: the memory order of a matrix of scales that the matrix products of other libraries
// expect.
//
//   // MXFP8 scales [tokens, width / 32] as cuBLASLt's VEC32_UE8M0 expects them
//   const auto layout = samebits::scale_layout::swizzled_128x4;
//   std::vector<std::byte> swizzled(samebits::layout_bytes(layout, tokens, width / 32));
//   samebits::arrange_scales(scales, layout, swizzled);
//
// `rows` and `cols` are the shape of the scales, as scales_shape() returns it. For tiles of one row
// along the contracted dimension: the operand's rows, and its tiles along the contracted dimension.
// Scales of column-wise tiles are passed transposed, as quantize() writes scales_transposed.
//
// "rows up to 4" is `rows` rounded up to a multiple of 4:
//
//   layout          unit  order in memory
//   row_major       fp32  [rows][cols]
//   column_major    fp32  [cols][rows up to 4]
//   row_padded      fp32  [rows][cols up to 4]
//   packed_ue8m0    byte  [cols up to 4, / 4][rows up to 4][4]
//   padded_128x4    byte  [rows up to 128][cols up to 4]
//   padded_4x128    byte  [rows up to 4][cols up to 128]
//   swizzled_128x4  byte  [rows up to 128, / 128][cols up to 4, / 4][32][4][4]: the last three
//                         indices are row % 32, row / 32 % 4 and col % 4
//
// Users of each layout:
// - row_major: samebits, DeepSeek-V3.
// - column_major: DeepGEMM on SM90 (MN-major, TMA-aligned); TransformerEngine, blocks of 1 x 128.
// - row_padded: TransformerEngine, blocks of 128 x 128.
// - packed_ue8m0: DeepGEMM on SM100. Four bytes are an int32 whose low byte is the first column.
// - padded_128x4, padded_4x128: TransformerEngine's MXFP8 and NVFP4, row-wise and column-wise.
// - swizzled_128x4: cuBLASLt's MXFP8 and NVFP4; torchao's to_blocked.
//
// A byte is e8m0, or for scales in e4m3 their code, whose bits no layout changes.
//
// Sources: DeepGEMM 54e2261 (deep_gemm/impls/smxx_layout.cuh), TransformerEngine d0067d0 (quantizer
// shapes), cuBLAS documentation ("1D block scaling factors layout").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/table.hpp"
#include "samebits/quantize.hpp"
#include "samebits/view.hpp"

namespace samebits {

enum class scale_layout : std::uint8_t {
  row_major,
  column_major,
  row_padded,
  packed_ue8m0,
  padded_128x4,
  padded_4x128,
  swizzled_128x4
};
template <>
inline constexpr auto table_of<scale_layout> = enum_table<scale_layout::swizzled_128x4>(
    {"row_major", "column_major", "row_padded", "packed_ue8m0", "padded_128x4", "padded_4x128",
     "swizzled_128x4"});

/// Returns the format of the scales in a layout: fp32, or e8m0 for layouts of bytes.
SAMEBITS_INLINE constexpr format_id layout_format(scale_layout layout) {
  return layout <= scale_layout::row_padded ? format_id::fp32 : format_id::e8m0;
}

namespace detail {

SAMEBITS_INLINE constexpr std::int64_t rounded_up(std::int64_t n, std::int64_t to) {
  return (n + to - 1) / to * to;
}

}  // namespace detail

/// Returns the shape of the scales with the padding. An empty matrix has no padding.
SAMEBITS_INLINE constexpr matrix_shape padded_shape(scale_layout layout, std::int64_t rows,
                                                    std::int64_t cols) {
  using detail::rounded_up;
  switch (layout) {
    case scale_layout::row_major: return {rows, cols};
    case scale_layout::column_major: return {rounded_up(rows, 4), cols};
    case scale_layout::row_padded: return {rows, rounded_up(cols, 4)};
    case scale_layout::packed_ue8m0: return {rounded_up(rows, 4), rounded_up(cols, 4)};
    case scale_layout::padded_4x128: return {rounded_up(rows, 4), rounded_up(cols, 128)};
    default: return {rounded_up(rows, 128), rounded_up(cols, 4)};
  }
}

/// Returns the bytes of a matrix of scales in a layout, padding included.
SAMEBITS_INLINE constexpr std::int64_t layout_bytes(scale_layout layout, std::int64_t rows,
                                                    std::int64_t cols) {
  const matrix_shape padded = padded_shape(layout, rows, cols);
  return padded.rows * padded.cols * storage_bytes(layout_format(layout));
}

/// Returns the byte offset of scale (row, col) in a layout. For hosts and kernels.
///
/// @param row  0 <= row < padded_shape().rows; rows from `rows` on are padding
/// @param col  0 <= col < padded_shape().cols; columns from `cols` on are padding
SAMEBITS_INLINE constexpr std::int64_t layout_offset(scale_layout layout, std::int64_t rows,
                                                     std::int64_t cols, std::int64_t row,
                                                     std::int64_t col) {
  const matrix_shape padded = padded_shape(layout, rows, cols);
  switch (layout) {
    case scale_layout::column_major: return (col * padded.rows + row) * 4;
    case scale_layout::packed_ue8m0: return (col / 4 * padded.rows + row) * 4 + col % 4;
    case scale_layout::swizzled_128x4: {
      const std::int64_t tile = row / 128 * (padded.cols / 4) + col / 4;
      return tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + col % 4;
    }
    default: return (row * padded.cols + col) * storage_bytes(layout_format(layout));
  }
}

/// Value of the padding. zero: 0 (byte 00), as DeepGEMM and TransformerEngine write it. one: 1
/// (byte 7F, in e4m3 38), so that a product that reads the padding makes no NaN and no 0 * Inf.
enum class scale_padding : std::uint8_t { zero, one };
template <>
inline constexpr auto table_of<scale_padding> = enum_table<scale_padding::one>({"zero", "one"});

/// Treatment of a scale that a byte cannot hold: neither a power of two in 2^-127 .. 2^127 nor NaN.
/// No scale is ever rounded.
enum class unpackable : std::uint8_t {
  refuse,  ///< throw invalid_argument naming the first one; write nothing
  count    ///< write byte FF, which is NaN, and count the scale
};
template <>
inline constexpr auto table_of<unpackable> = enum_table<unpackable::count>({"refuse", "count"});

/// Options of arrange_scales() and restore_scales().
struct scale_layout_options {
  scale_padding padding = scale_padding::zero;
  samebits::unpackable unpackable = samebits::unpackable::refuse;
};

/// Report of arrange_scales() and restore_scales().
struct scale_layout_report {
  std::uint64_t scales = 0;      ///< without the padding
  std::uint64_t unpackable = 0;  ///< scales that a byte cannot hold
  std::int64_t first_row = -1;   ///< of the first unpackable one in row-major order, or -1
  std::int64_t first_col = -1;

  friend constexpr bool operator==(const scale_layout_report&,
                                   const scale_layout_report&) = default;
};

/// Writes scales and padding in a layout. Bytes become fp32 exactly; fp32 becomes bytes as
/// options.unpackable says.
///
/// @param scales  [rows, cols] in fp32 or e8m0, or for layouts of bytes other than packed_ue8m0 in
///   e4m3; host memory, any strides
/// @param layout  the layout
/// @param out  layout_bytes() bytes of host memory; every byte is written
/// @param options  value of the padding, treatment of unpackable scales
/// @throws invalid_argument, before anything is written, if:
///   - the scales are in another format or in device memory, or the layout has no scales in e4m3;
///   - a size or stride is negative;
///   - `out` has not layout_bytes() bytes;
///   - unpackable::refuse refuses a scale.
scale_layout_report arrange_scales(const const_matrix_view& scales, scale_layout layout,
                                   std::span<std::byte> out,
                                   const scale_layout_options& options = {});

/// Reads scales from a layout; the inverse of arrange_scales(). The padding is not read.
///
/// @param in  layout_bytes() bytes of host memory
/// @param layout  the layout
/// @param scales  [rows, cols] in fp32, e8m0 or e4m3, host memory; receives the scales
/// @param options  treatment of unpackable scales
/// @throws invalid_argument if elements of `scales` share memory.
/// @throws as arrange_scales() does.
scale_layout_report restore_scales(std::span<const std::byte> in, scale_layout layout,
                                   const matrix_view& scales,
                                   const scale_layout_options& options = {});

}  // namespace samebits
