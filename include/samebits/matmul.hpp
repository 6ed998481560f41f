// Matrix products that say exactly what they compute, those of tensor cores among them.
//
//   // what cuBLASLt's FP8 product returns on a Hopper GPU, computed without one
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

/// Dequantization scales of an operand, one for each tile of it.
struct operand_scales {
  /// scales_shape(rows, cols, tile) of the operand, in fp32 or e8m0. Without data: 1 everywhere.
  const_matrix_view values = {};
  /// {0, 0} one scale. A [M, K]: {1, 0} per row, {1, 128}, {128, 128}. B [K, N]: {0, 1} per column,
  /// {128, 1}, {128, 128}; the 1 x 128 tiles of weights [N, K] are {128, 1} of their transpose.
  tile_shape tile = {0, 0};
};

/// The order in which cuBLASLt's FP8 products on Hopper apply scales for these tiles of A and B
/// (13.1, in each of its algorithms: docs/accumulators.md): single lines of both by 128 of K
/// a_then_b_fused, the whole rows of A and columns of B b_then_a, all others product_fused.
constexpr scale_order cublaslt_order(const tile_shape& a, const tile_shape& b) {
  const auto are = [&](const tile_shape& x, const tile_shape& y) { return a == x && b == y; };
  if (are({1, 128}, {128, 1})) return scale_order::a_then_b_fused;
  if (are({1, 0}, {0, 1})) return scale_order::b_then_a;
  return scale_order::product_fused;
}

/// What a product has besides its operands.
struct matmul_options {
  operand_scales a_scales = {};
  operand_scales b_scales = {};
  std::optional<scale_order> order = {};  ///< without: cublaslt_order() of the tiles
  const_matrix_view c = {};               ///< [M, N] in fp32, fp16 or bf16; without data: none
  addend c_enters = addend::last;
};

/// d [M, N] = a [M, K] * b [K, N], each operand dequantized by its scales, + c.
///
/// Formats: a and b any but fp64 and e8m0, for tensor_core what the unit multiplies; d fp32, fp16
/// or bf16, for exact also fp64. The sum becomes d by one rounding to nearest even, overflow::ieee.
///
/// exact takes scales and c as exact numbers. Otherwise: scales that change along K (tiles of 128)
/// are applied to the sum of each 128 of K; this takes fp32_per_128, or tensor_core with a
/// promotion of 128. Other scales are applied to the whole sum, c is added after them
/// (accumulator.hpp). addend::first: c is in fp32, for a tensor_core without promotion in its
/// sums' format; no scales.
///
/// A zero that is exact, and everything that a tensor core rounds to zero, is +0. K = 0 gives +0,
/// or c. The result depends on the arguments alone: not on the executor, the thread count, the
/// strides or the alignment. Host memory only. Thread-safe; allocates decoded copies of the
/// operands.
///
/// Throws invalid_argument, before anything is written, for: formats, shapes, tiles, an
/// accumulation or options that are none of the above, negative sizes or strides, null data of a
/// non-empty view, elements of d that share memory, d overlapping another view, device memory, an
/// unknown backend name; unsupported for formats that a tensor unit does not multiply and a backend
/// that this machine lacks or that does not multiply matrices.
void matmul(const const_matrix_view& a, const const_matrix_view& b, const matrix_view& d,
            const accumulator& sum, const matmul_options& options = {}, const executor& where = {});

/// How well it is known that a tensor core computes like this: the evidence of its row. Throws as
/// matmul() does for an accumulation that is none or a unit that does not multiply the formats;
/// evidence::none for other kinds of accumulation.
evidence evidence_of(const accumulator& sum, format_id a, format_id b);

/// How far a matrix of results is from the exact one, in binary64; sums over the tree of contract
/// §6, in the order of the elements.
struct product_error {
  std::uint64_t count = 0;      ///< elements
  std::uint64_t nonfinite = 0;  ///< of which the result or the exact value is not finite; left out
  std::uint64_t unequal = 0;    ///< of which differ from the exact value
  double mean = 0;              ///< of |error|
  double max = 0;               ///< of |error|
  double signal = 0;            ///< sum of exact^2
  double noise = 0;             ///< sum of error^2
  /// Sum of (exact rounded to the results' format - exact)^2: what no kernel can avoid.
  double rounding_noise = 0;
  /// Sum of (result - exact rounded to the results' format)^2: what the accumulation has done.
  double accumulation_noise = 0;
  /// |error| / |exact|: [i] counts 2^-(i+1) <= ratio < 2^-i; [0] also more, and any error of 0; the
  /// last also less. Elements without error are not counted.
  std::array<std::uint64_t, 32> octaves = {};
};

/// Of results [M, N] in fp32, fp16 or bf16 and exact values [M, N] in fp64, as matmul() returns
/// them for accumulator::exact(). Throws as matmul() and tree_sum do.
product_error error_of(const const_matrix_view& results, const const_matrix_view& exact);

/// A product as a GPU returns it, how well that is known, and its distance from the exact one.
struct prediction {
  evidence level;
  product_error error;
};

/// matmul() with an accumulation of kind tensor_core, and with exact() for comparison. d in fp32,
/// fp16 or bf16. Throws as matmul() and tree_sum do.
prediction predict(const const_matrix_view& a, const const_matrix_view& b, const matrix_view& d,
                   const accumulator& sum, const matmul_options& options = {},
                   const executor& where = {});

}  // namespace samebits
