// Quantizes a matrix into codes of 8, 6 or 4 bits with one scale per tile, and dequantizes it.
//
//   std::vector<samebits::bf16> x = ...;                     // activations [tokens, width]
//   const samebits::tile_shape tile = {1, 128};
//   const auto [tile_rows, tile_cols] = samebits::scales_shape(tokens, width, tile);
//   std::vector<samebits::e4m3> codes(x.size());
//   std::vector<float> scales(static_cast<std::size_t>(tile_rows * tile_cols));
//   samebits::quantize(samebits::view_of(x.data(), tokens, width),
//                      {.codes = samebits::view_of(codes.data(), tokens, width),
//                       .scales = samebits::view_of(scales.data(), tile_rows, tile_cols)},
//                      {.tile = tile, .scale = samebits::scale_rule::div, .eps = 1e-4f});
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "samebits/backend.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/core/scaling.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// The elements that share a scale: tiles of [rows, cols] elements.
///
/// Tiles at the right and bottom edges of the matrix are cut off there. 0 stands for the whole
/// extent: {1, 0} is one scale per row, {0, 1} one per column, {0, 0} one per tensor. All other
/// shapes are 1 x G, G x 1 or G x G with G one of 16, 32, 64, 128, 256.
struct tile_shape {
  std::int64_t rows = 1;
  std::int64_t cols = 128;

  friend constexpr bool operator==(const tile_shape&, const tile_shape&) = default;
};

/// Rows and columns of a matrix.
struct matrix_shape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;

  friend constexpr bool operator==(const matrix_shape&, const matrix_shape&) = default;
};

/// Returns the shape of the scales of a matrix [rows, cols].
///
/// @returns one row and column per tile; 0 where the matrix has no elements
/// @throws invalid_argument if a size is negative or if tile_shape does not allow the tile.
matrix_shape scales_shape(std::int64_t rows, std::int64_t cols, const tile_shape& tile);

/// Options of quantize() (contract §7).
struct quantize_options {
  tile_shape tile = {};
  scale_rule scale = scale_rule::te;
  float eps = 0.0f;  ///< lower bound of the amax; finite, >= 0
  float upper_bound = std::numeric_limits<float>::infinity();  ///< of the amax; > 0
  samebits::nonfinite nonfinite = samebits::nonfinite::te;
  samebits::rounding rounding =
      samebits::rounding::nearest_even;  ///< of the codes: this or stochastic
  samebits::overflow overflow = samebits::overflow::saturate;
  nan_policy nan = nan_policy::canonical;
  random_stream random = {};  ///< read only by rounding::stochastic
  samebits::scale_overflow scale_overflow =
      samebits::scale_overflow::flt_max;  ///< read only by te and te_pow2
  /// Given inverse scales: [scales_shape(rows, cols, tile)] in fp32, in the memory of the views.
  /// With the inverse scale S of a tile, y = RN(x * S) and s = RN(1 / S); `scale`, `eps`,
  /// `upper_bound` and `nonfinite` are ignored. Without data: quantize() computes the scales.
  const_matrix_view inverse_scales = {};
  /// Given scale of the tensor, for a scale rule with two levels: [1, 1] in fp32, >= 0, in the memory
  /// of the views. Without data: quantize() computes it from the amax of the matrix.
  const_matrix_view tensor_scale = {};
  /// Null, or a word in the memory of the views. If the word is not 0, quantize() writes nothing. A
  /// device backend reads the word when its kernels run.
  const std::uint32_t* skip_if_nonzero = nullptr;
  /// Memory for the call alone until the call's work is done: quantize_workspace() bytes or more,
  /// in the memory of the views, aligned to 16 bytes. Empty: a device backend allocates from the
  /// stream's memory pool and frees it again (cudaMallocAsync), also within a graph capture.
  std::span<std::byte> workspace = {};
};

/// Statistics of a quantized matrix, computed in the same pass as the codes.
struct quantize_statistics {
  std::uint64_t elements = 0;
  std::uint64_t zeros = 0;        ///< of either sign
  std::uint64_t nan = 0;          ///< elements that are NaN
  std::uint64_t inf = 0;          ///< elements that are infinite
  std::uint64_t underflowed = 0;  ///< finite, not zero, and became zero
  std::uint64_t saturated = 0;    ///< finite; scaled and rounded, beyond the largest code
  float amax = 0;                 ///< max magnitude; NaN (7FFFFFFF) if any element is NaN
  float min_nonzero = 0;          ///< min finite magnitude above zero; 0 if there is none
  /// Sums of x^2 (signal) and of (x - x')^2 (noise) in binary64, where x' = RN(value of the code *
  /// s). Order of the sums: the tree of contract §6, with inputs in the order of the elements. An
  /// element whose x or x' is not finite contributes +0. The signal-to-noise ratio is 10 *
  /// log10(signal / noise) dB.
  double signal = 0;
  double noise = 0;

  /// Compares all bits: a NaN equals itself.
  friend constexpr bool operator==(const quantize_statistics& a, const quantize_statistics& b) {
    return std::bit_cast<bits>(a) == std::bit_cast<bits>(b);
  }

 private:
  using bits = std::array<std::uint64_t, 9>;
};

/// Outputs of quantize(). A view without data and a null pointer are not written.
struct quantize_outputs {
  /// [rows, cols], e4m3, e5m2, e2m1, e2m3 or e3m2, one code a byte (samebits/packing.hpp packs codes
  /// of 4 and 6 bits). In host memory, statistics alone need no codes: set codes.format and leave out
  /// shape and data.
  matrix_view codes = {};
  /// Dequantization scales, scales_shape(rows, cols, tile), in fp32, e8m0 or e4m3. e8m0 requires a
  /// scale rule whose scales are powers of two; e4m3 a rule with two levels. With eps 0, the scale of a
  /// tile of zeros is 1 in fp32 and byte 00 in e8m0.
  matrix_view scales = {};
  matrix_view codes_transposed = {};          ///< [cols, rows]: the transpose of the codes
  matrix_view scales_transposed = {};         ///< the transpose of the scales, same format
  quantize_statistics* statistics = nullptr;  ///< in the memory of the views
  /// The tensor's scale of a scale rule with two levels, [1, 1] in fp32.
  matrix_view tensor_scale = {};
};

/// The scale rule and the tensor's scale that dequantize() needs for a rule with two levels.
struct second_level {
  scale_rule scale = scale_rule::te;
  /// [1, 1] in fp32, in the memory of the codes. A rule with one level has none.
  const_matrix_view tensor_scale = {};
};

/// Quantizes a matrix tile by tile: options.scale gives each tile's scale from the tile's amax, and
/// each code is a scaled element rounded once.
///
/// The result depends on the inputs and options alone. The executor, the thread count, the strides
/// and the alignment do not change a bit. A part of a matrix that is cut on tile borders gets the
/// codes and scales it has in the whole matrix. With stochastic rounding, set random.offset and
/// random.pitch for this as in convert().
///
/// @param in  [rows, cols] in fp32, fp16 or bf16, host or device memory. Any size, 0 included;
///   tiles at the edges are smaller.
/// @param outputs  codes, scales and statistics to write, in the memory of `in`
/// @param options  tile, scale rule, rounding and policies
/// @param where  backend, threads and stream
/// @throws invalid_argument, before anything is written, if:
///   - a format, shape, tile or option is not allowed;
///   - scales are in e8m0 and the scale rule's scales are not powers of two;
///   - scales are in e4m3 or there is a tensor_scale, and the scale rule has not two levels;
///   - the rule is nvfp4_4over6_* and the tile not {1, 16}, {16, 1} or {16, 16};
///   - the workspace is too small or misaligned;
///   - neither codes nor transposed codes are requested, nor statistics alone;
///   - a size or stride is negative;
///   - elements of an output share memory, or views overlap;
///   - the views lie in different memory, on two devices, or not in the backend's memory;
///   - the stream belongs to another device than the views;
///   - the backend's name is unknown.
/// @throws unsupported if this machine lacks the backend or if the backend cannot quantize.
/// @throws environment_error for device views if the backend's self-test fails, or if the stream is
///   being captured and the self-test has not run on the device (samebits/self_test.hpp).
/// @throws environment_error if statistics are requested and tree_sum would throw
///   environment_error.
/// @note Device views: the call enqueues on where.stream and returns. It can be captured into a
///   CUDA graph.
/// @note Thread-safe. Host backends allocate a few bytes per tile and per 4096 elements. Device
///   backends allocate only the workspace, and only if options.workspace is empty.
void quantize(const const_matrix_view& in, const quantize_outputs& outputs,
              const quantize_options& options = {}, const executor& where = {});

/// Returns the size of the workspace that quantize() needs for these arguments.
///
/// @returns bytes of device memory; 0 on the host
/// @throws as quantize() does: the arguments are checked in the same way.
std::size_t quantize_workspace(const const_matrix_view& in, const quantize_outputs& outputs,
                               const quantize_options& options = {}, const executor& where = {});

/// Dequantizes codes: each element is RN(value * s) in binary32, rounded to nearest even with
/// overflow::ieee into the format of `out`.
///
/// @param codes  [rows, cols] in e4m3, e5m2, e2m1, e2m3 or e3m2
/// @param scales  dequantization scales, [scales_shape(rows, cols, tile)] in fp32, e8m0 or e4m3
/// @param out  [rows, cols] in fp32, fp16 or bf16
/// @param tile  the tile of quantize(). For the transposed outputs of quantize(): its transpose.
/// @param where  backend, threads and stream
/// @throws as quantize() does.
void dequantize(const const_matrix_view& codes, const const_matrix_view& scales,
                const matrix_view& out, const tile_shape& tile, const executor& where = {});

/// Dequantizes codes whose scale rule has two levels: each element is RN(value * d), where d takes the
/// tile's and the tensor's scale (samebits/core/scaling.hpp).
///
/// @param level  the scale rule of quantize() and the tensor's scale
/// @throws invalid_argument if the rule has two levels and tensor_scale has no data, or if the rule has
///   one level and tensor_scale has data.
/// @throws as dequantize() without `level` does.
void dequantize(const const_matrix_view& codes, const const_matrix_view& scales,
                const matrix_view& out, const tile_shape& tile, const second_level& level,
                const executor& where = {});

}  // namespace samebits
