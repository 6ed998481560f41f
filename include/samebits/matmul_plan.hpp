// matmul_plan: matrix products on a GPU, by cuBLASLt, whose bits a rule states and a CPU returns.
//
//   using samebits::on_device, samebits::transposed;
//   // activations [m, k], weights [n, k], a result [m, n]: views of device memory
//   const samebits::matmul_plan plan(x, transposed(w), y);            // before the training
//   plan.run(x, transposed(w), y, {}, samebits::on_stream(stream));   // in each step, or a graph
//   // the same bits, from copies of the operands in host memory
//   samebits::matmul(x_host, transposed(w_host), y_host, plan.rule());
#pragma once

#include <memory>
#include <string>

#include "samebits/backend.hpp"
#include "samebits/core/accumulator.hpp"
#include "samebits/matmul.hpp"
#include "samebits/view.hpp"

namespace samebits {

namespace backends {
struct matmul_plan_data;
}  // namespace backends

/// Options of a matmul_plan: FP8 alone.
struct matmul_plan_options {
  /// Dequantization scales in fp32, in device memory, laid out as cuBLASLt reads them. Operands are
  /// [lines, K]; the lines of B are its columns, so scales and tiles of B are the transpose.
  /// Aligned to 16 bytes.
  /// - tile {0, 0}: one scale
  /// - {1, 0}: [lines, 1], dense
  /// - {1, 128}: [lines, tiles of K], stored by tiles of K: element (l, t) at t * lines + l
  /// - {128, 128}: [tiles of lines, tiles of K], rows ceil(tiles of K / 4) * 4 elements apart
  operand_scales a_scales = {};
  operand_scales b_scales = {};
  /// Sums stay in the tensor core for all of K; otherwise they are promoted after each 128 of K.
  bool fast_accumulation = false;
};

/// A product D = A * B of matrices of fixed shapes, formats and strides by one algorithm of cuBLASLt
/// that does not split K.
///
/// The constructor asks cuBLASLt for its algorithms, times them, and takes the fastest one whose
/// results are those of rule(): it multiplies random operands of its own and compares up to 4,096
/// results with matmul() on the CPU. The exact value of half of these sums is 0, so that the result
/// consists of roundings and shows their order. An algorithm with other bits is not used.
///
/// An element of D depends on one row of A and one column of B. So weights that are concatenated
/// give the bits of separate products.
///
/// Copies of a plan share one description. Thread-safe.
class matmul_plan {
 public:
  /// Chooses an algorithm. Takes about a hundred products, allocates device memory for operands and
  /// a result of its own, and waits.
  ///
  /// @param a  [M, K] in bf16, fp16 or FP8, in device memory; dense in rows or in columns
  /// @param b  [K, N], as `a`; bf16 with bf16, fp16 with fp16. FP8 needs A dense in rows and B dense
  ///   in columns, as the transpose of weights [N, K] is.
  /// @param d  [M, N] in fp32, or in the format of bf16 or fp16 operands; FP8 allows all three. Dense
  ///   in rows. No element is read or written.
  /// @param options  scales of FP8 operands
  /// @param where  stream, and backend: cuda-native
  /// @throws invalid_argument for a size of 0, formats, strides or scales that are not allowed, views
  ///   outside device memory, and if the stream is being captured: an algorithm is chosen and checked
  ///   before.
  /// @throws unsupported if the GPU is no Hopper, if cuBLASLt cannot be loaded or has no such
  ///   product, and if no algorithm has the rule's bits; the message says which.
  /// @throws cuda_error for errors of the device
  /// @note The library is the one that the environment variable SAMEBITS_CUBLASLT names, else
  ///   libcublasLt.so.13 or .12 that the process has loaded, else the one that the loader finds.
  matmul_plan(const const_matrix_view& a, const const_matrix_view& b, const matrix_view& d,
              const matmul_plan_options& options = {}, const executor& where = {});

  /// How each element is summed: for matmul() on a CPU, with the same scales.
  [[nodiscard]] const accumulator& rule() const;

  /// cuBLASLt's version, and the numbers by which it configures the algorithm.
  [[nodiscard]] const std::string& algorithm() const;

  /// Computes d = a * b.
  ///
  /// @param a, b, d  of the plan's shapes, formats, strides and device, at addresses with at least the
  ///   plan's alignment. d overlaps no operand.
  /// @param options  the plan's; the scales may lie elsewhere
  /// @param where  stream; the backend is not read
  /// @throws invalid_argument if an argument is not as the plan's
  /// @throws cuda_error for errors of the device
  /// @note Enqueues one product, allocates no device memory and can be captured into a graph.
  void run(const const_matrix_view& a, const const_matrix_view& b, const matrix_view& d,
           const matmul_plan_options& options = {}, const executor& where = {}) const;

 private:
  std::shared_ptr<const backends::matmul_plan_data> data_;
};

}  // namespace samebits
