// Quantization: a matrix as 8-bit codes with one binary32 scale per tile, and back.
//
//   std::vector<samebits::bf16> x = ...;                     // activations [tokens, width]
//   const samebits::tile_shape tile = {1, 128};
//   const auto [tile_rows, tile_cols] = samebits::scales_shape(tokens, width, tile);
//   std::vector<samebits::e4m3> codes(x.size());
//   std::vector<float> scales(tile_rows * tile_cols);
//   samebits::quantize(samebits::view_of(x.data(), tokens, width),
//                      {.codes = samebits::view_of(codes.data(), tokens, width),
//                       .scales = samebits::view_of(scales.data(), tile_rows, tile_cols)},
//                      {.tile = tile, .math = samebits::scale_math::div, .eps = 1e-4f});
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

/// Which elements share a scale: tiles of [rows, cols] elements, the last ones cut off at the edges
/// of the matrix. 0 is the whole extent: {1, 0} is a scale per row, {0, 1} per column, {0, 0} per
/// tensor. Else 1 x G, G x 1 or G x G with G one of 16, 32, 64, 128, 256.
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

/// The shape of the scales of a matrix [rows, cols]: one for each tile, 0 where there are no
/// elements. Throws invalid_argument for negative sizes and a tile_shape that is none of those.
matrix_shape scales_shape(std::int64_t rows, std::int64_t cols, const tile_shape& tile);

/// How a matrix is quantized (contract §7).
struct quantize_options {
  tile_shape tile = {};
  scale_math math = scale_math::te;
  float eps = 0.0f;  ///< amaxes below it count as it; finite, >= 0
  float upper_bound = std::numeric_limits<float>::infinity();  ///< amaxes above it count as it; > 0
  nonfinite on_nonfinite = nonfinite::te;
  rounding round = rounding::nearest_even;  ///< of the codes; or stochastic
  overflow on_overflow = overflow::saturate;
  nan_policy on_nan = nan_policy::canonical;
  random_stream random = {};  ///< read only by rounding::stochastic
  scale_overflow on_scale_overflow = scale_overflow::flt_max;  ///< read only by te and te_pow2
  /// [scales_shape(rows, cols, tile)] in fp32, in the memory of the views: S of each tile where
  /// scales are given and not computed. Then y = RN(x * S), s = RN(1 / S), and `math`, the bounds
  /// and the non-finite policy are not read. A view without data: scales are computed.
  const_matrix_view multipliers = {};
  /// In the memory of the views, or null. Where it points to a value other than 0 nothing is
  /// written. A device backend reads it when its kernels run.
  const std::uint32_t* skip_if_nonzero = nullptr;
  /// In the memory of the views and aligned to 16 bytes: quantize_workspace() bytes or more, the
  /// call's own until it is done. Empty: a device backend takes what it needs from the stream's
  /// memory pool and gives it back (cudaMallocAsync), also within a graph capture.
  std::span<std::byte> workspace = {};
};

/// What happened to the elements of a matrix, in one pass with its quantization.
struct quantize_statistics {
  std::uint64_t elements = 0;
  std::uint64_t zeros = 0;        ///< of either sign
  std::uint64_t nan = 0;          ///< elements that are NaN
  std::uint64_t inf = 0;          ///< elements that are infinite
  std::uint64_t underflowed = 0;  ///< finite, not zero, and became zero
  std::uint64_t saturated = 0;    ///< finite, and beyond the largest code once scaled and rounded
  float amax = 0;                 ///< largest magnitude; NaN (7FFFFFFF) where any element is NaN
  float min_nonzero = 0;          ///< smallest finite magnitude above zero; 0 if there is none
  /// Sums of x^2 and of (x - x')^2, where x' = RN(value of the code * s), in binary64 over the tree
  /// of contract §6: leaves in the order of the elements; +0 where x or x' is not finite. The
  /// signal-to-noise ratio is 10 * log10(signal / noise) dB.
  double signal = 0;
  double noise = 0;

  /// Of all bits: a NaN equals itself.
  friend constexpr bool operator==(const quantize_statistics& a, const quantize_statistics& b) {
    return std::bit_cast<bits>(a) == std::bit_cast<bits>(b);
  }

 private:
  using bits = std::array<std::uint64_t, 9>;
};

/// What is wanted of a quantization; a view without data, and a null pointer, are not.
struct quantize_outputs {
  matrix_view codes = {};  ///< [rows, cols], e4m3 or e5m2
  /// scales_shape(rows, cols, tile): dequantization scales in fp32; or in e8m0, of maths whose
  /// scales are powers of two. A tile of zeros is 1 in fp32 and 00 in e8m0.
  matrix_view scales = {};
  matrix_view codes_transposed = {};          ///< [cols, rows]; the same codes, by the same tiles
  matrix_view scales_transposed = {};         ///< the transpose of the scales, in their format
  quantize_statistics* statistics = nullptr;  ///< in the memory of the views
};

/// Quantizes a matrix in [rows, cols] of fp32, fp16 or bf16 tile by tile: a scale from the tile's
/// largest magnitude by options.math, and codes that are the scaled elements rounded once.
///
/// The result depends on the inputs and options alone: not on the executor, the thread count, the
/// strides or the alignment. Part of a matrix cut on tile borders gets the codes and scales it has
/// in the whole; with stochastic rounding, given the offset of its first element and the pitch of
/// the whole, as in convert(). Any rows and cols, 0 too; the tiles at the edges are smaller.
///
/// Thread-safe. Host backends allocate a few bytes per tile and per 4096 elements; device backends
/// nothing but, where options.workspace is empty, the workspace.
///
/// Throws invalid_argument, before anything is written, for: a format, shape, tile or option that
/// is none of the above, e8m0 scales of other maths, a workspace that is too small or misaligned,
/// neither kind of codes wanted, negative sizes or strides, outputs whose elements share memory,
/// views that overlap or lie in different memory or not in the backend's, an unknown backend name;
/// unsupported for a backend that this machine lacks or that cannot quantize; environment_error,
/// where statistics are wanted, as tree_sum does.
void quantize(const const_matrix_view& in, const quantize_outputs& outputs,
              const quantize_options& options = {}, const executor& where = {});

/// Bytes of device memory that a quantization needs besides its views; 0 on the host. Checks the
/// arguments as quantize() does.
std::size_t quantize_workspace(const const_matrix_view& in, const quantize_outputs& outputs,
                               const quantize_options& options = {}, const executor& where = {});

/// out [rows, cols] in fp32, fp16 or bf16 = codes [rows, cols] in e4m3 or e5m2 times the scales
/// [scales_shape(rows, cols, tile)] in fp32 or e8m0 of their tiles: RN(value * s) in
/// binary32, rounded to nearest even, overflow::ieee, into out's format. Transposed outputs of
/// quantize() are taken with the transposed tile. Throws as quantize() does.
void dequantize(const const_matrix_view& codes, const const_matrix_view& scales,
                const matrix_view& out, const tile_shape& tile, const executor& where = {});

}  // namespace samebits
