// Matrix products with an exactly specified accumulation, including the accumulations of tensor
// cores.
//
//   // the result of cuBLASLt's FP8 product on a Hopper GPU, computed without a GPU
//   std::vector<samebits::e4m3> a(m * k), w(n * k);  // activations, weights [n, k]
//   std::vector<float> d(m * n);
//   using samebits::accumulator, samebits::tensor_unit, samebits::view_of;
//   const auto like_cublas = accumulator::tensor_core(tensor_unit::hopper_wgmma, 128);
//   samebits::matmul(view_of(a.data(), m, k), samebits::transposed(view_of(w.data(), n, k)),
//                    view_of(d.data(), m, n), like_cublas);
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "samebits/backend.hpp"
#include "samebits/core/accumulator.hpp"
#include "samebits/core/tensor_unit.hpp"
#include "samebits/quantize.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// Dequantization scales of an operand, one per tile.
struct operand_scales {
  /// Shape scales_shape(rows, cols, tile) of the operand, in fp32 or e8m0, for exact also e4m3.
  /// Without data: 1 everywhere.
  const_matrix_view values = {};
  /// Tile of one scale. Allowed for A [M, K]: {0, 0} one scale, {1, 0} per row, {1, 128}, {128,
  /// 128}; for exact also {1, G} and {G, G} with G in 16, 32, 64, 256. Allowed for B [K, N]: the same
  /// with rows and columns exchanged. The 1 x 128 tiles of weights [N, K] are {128, 1} tiles of their
  /// transpose.
  tile_shape tile = {0, 0};
};

/// Returns the order in which cuBLASLt's FP8 products on Hopper apply scales for these tiles of A
/// and B (cuBLASLt 13.1, each of its algorithms: docs/accumulators.md).
///
/// @returns a_then_b_fused for {1, 128} and {128, 1}; b_then_a for {1, 0} and {0, 1}; product_fused
///   for all other tiles
constexpr scale_order cublaslt_order(const tile_shape& a, const tile_shape& b) {
  const auto are = [&](const tile_shape& x, const tile_shape& y) { return a == x && b == y; };
  if (are({1, 128}, {128, 1})) return scale_order::a_then_b_fused;
  if (are({1, 0}, {0, 1})) return scale_order::b_then_a;
  return scale_order::product_fused;
}

/// Options of matmul(): scales, their order, and C.
struct matmul_options {
  operand_scales a_scales = {};
  operand_scales b_scales = {};
  std::optional<samebits::scale_order> scale_order = {};  ///< empty: cublaslt_order() of the tiles
  const_matrix_view c = {};  ///< [M, N] in fp32, fp16 or bf16; without data: none
  addend c_enters = addend::last;
};

/// Computes d [M, N] = a [M, K] * b [K, N] + c, with each operand dequantized by its scales.
///
/// The sum becomes an element of d by one rounding to nearest even, overflow::ieee. A zero that is
/// exact, and everything that a tensor core rounds to zero, is +0. K = 0 gives +0, or c. The result
/// depends on the arguments alone. The executor, the thread count, the strides and the alignment do
/// not change a bit.
///
/// Scales and c, by kind of accumulation:
/// - exact uses scales and c as exact numbers.
/// - Kinds other than exact apply scales that change along K (tiles of 128) to the sum of each 128
///   of K. Such scales require fp32_per_128, or tensor_core with a promotion of 128.
/// - Kinds other than exact apply scales that do not change along K to the whole sum, and add c
///   after the scales (accumulator.hpp).
/// - Kinds other than exact allow scales only with addend::last. With addend::first c is in fp32;
///   for a tensor_core without promotion, in the format of the unit's sums.
/// - With slices of K or fp32_as_tf32, scales that change along K are not allowed.
///
/// @param a  [M, K], any format but fp64 and e8m0; for tensor_core a format that the unit
///   multiplies
/// @param b  [K, N], formats as for a
/// @param d  [M, N] in fp32, fp16 or bf16; for exact also fp64. Overlaps no other view.
/// @param sum  the accumulation
/// @param options  scales, their order, and c
/// @param where  backend and threads
/// @throws invalid_argument, before anything is written, if:
///   - a format, shape, tile, accumulation or option is not allowed;
///   - a size or stride is negative;
///   - the data of a non-empty view is null;
///   - elements of d share memory, or d overlaps another view;
///   - a view lies in device memory;
///   - the backend's name is unknown.
/// @throws unsupported if the tensor unit does not multiply the formats, if this machine lacks the
///   backend, or if the backend does not multiply matrices.
/// @note Host memory only. Thread-safe. Allocates copies of the operands; with slices also sums of D.
void matmul(const const_matrix_view& a, const const_matrix_view& b, const matrix_view& d,
            const accumulator& sum, const matmul_options& options = {}, const executor& where = {});

/// Returns the evidence that a tensor core computes like this: the evidence of its row in
/// samebits/core/tensor_unit.hpp.
///
/// @returns evidence::none for accumulations of other kinds than tensor_core
/// @throws as matmul() does for an accumulation that is not allowed, or a unit that does not
///   multiply the formats.
evidence evidence_of(const accumulator& sum, format_id a, format_id b);

/// Errors of a matrix of results against the exact matrix, in binary64. Order of the sums: the tree
/// of contract §6, in the order of the elements.
struct product_error {
  std::uint64_t count = 0;      ///< elements
  std::uint64_t nonfinite = 0;  ///< result or exact value not finite; excluded below
  std::uint64_t unequal = 0;    ///< results that differ from the exact value
  double mean = 0;              ///< of |error|
  double max = 0;               ///< of |error|
  double signal = 0;            ///< sum of exact^2
  double noise = 0;             ///< sum of error^2
  /// Sum of (exact rounded to the results' format - exact)^2: the error that no kernel can avoid.
  double rounding_noise = 0;
  /// Sum of (result - exact rounded to the results' format)^2: the error of the accumulation.
  double accumulation_noise = 0;
  /// Histogram of |error| / |exact|: octaves[i] counts 2^-(i+1) <= ratio < 2^-i. octaves[0] also
  /// counts larger ratios and every error where exact is 0. The last one also counts smaller
  /// ratios. Elements without error are not counted.
  std::array<std::uint64_t, 32> octaves = {};
};

/// Returns the errors of results against exact values.
///
/// @param results  [M, N] in fp32, fp16 or bf16
/// @param exact  [M, N] in fp64, as matmul() returns them for accumulator::exact()
/// @throws as matmul() and tree_sum do.
product_error error_of(const const_matrix_view& results, const const_matrix_view& exact);

/// Evidence and error of a product computed as a GPU computes it.
struct prediction {
  evidence level;
  product_error error;
};

/// Computes matmul(), and compares d with accumulator::exact().
///
/// @param d  [M, N] in fp32, fp16 or bf16; the other parameters are those of matmul()
/// @returns the evidence of the accumulation, and the error of d
/// @throws as matmul() and tree_sum do.
prediction predict(const const_matrix_view& a, const const_matrix_view& b, const matrix_view& d,
                   const accumulator& sum, const matmul_options& options = {},
                   const executor& where = {});

}  // namespace samebits
