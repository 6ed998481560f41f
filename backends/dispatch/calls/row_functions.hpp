// Functions of rows: the checked calls that a backend receives.
#pragma once

#include <cstdint>

#include "backends/dispatch/backend.hpp"
#include "numerics/hardware/torch_operators/cross_entropy.hpp"
#include "numerics/hardware/torch_operators/row_layer_norm.hpp"
#include "numerics/hardware/torch_operators/row_order.hpp"
#include "numerics/hardware/torch_operators/scores.hpp"
#include "numerics/hardware/triton_functions/triton_softmax.hpp"
#include "samebits/core/config.hpp"
#include "samebits/row_functions.hpp"

namespace samebits::backends {

enum class row_function : std::uint8_t {
  softmax,
  log_softmax,
  softmax_gradient,
  log_softmax_gradient,
  layer_norm,
  layer_norm_gradient,
  rms_norm,
  rms_norm_gradient,
  // The norms of in + grad, which is also written; their gradients, plus the rows of `bias`. Device
  // backends alone have them.
  sum_layer_norm,
  sum_layer_norm_gradient,
  sum_rms_norm,
  sum_rms_norm_gradient,
  // Softmax of scores and its gradient (row_call::has_scores). No row_call has them.
  scaled_softmax,
  scaled_softmax_gradient,
  // Parts of cross_entropy() on device memory. No row_call has them.
  picked_log_softmax,
  cross_entropy_gradient,
};

/// Whether the result is a gradient, computed in place of row_task::grad. Inlined by force, because
/// files compiled for AVX2 and AVX-512 call it: a copy that the linker takes from one of them would
/// not run on every processor.
SAMEBITS_INLINE constexpr bool is_gradient(row_function f) {
  return f == row_function::softmax_gradient || f == row_function::log_softmax_gradient ||
         f == row_function::layer_norm_gradient || f == row_function::rms_norm_gradient ||
         f == row_function::sum_layer_norm_gradient || f == row_function::sum_rms_norm_gradient ||
         f == row_function::scaled_softmax_gradient;
}

/// Whether the function is LayerNorm, RMSNorm or a gradient of these.
SAMEBITS_INLINE constexpr bool is_norm(row_function f) {
  return f >= row_function::layer_norm && f <= row_function::sum_rms_norm_gradient;
}

/// Whether the function adds rows: a norm before it, a gradient to its result.
SAMEBITS_INLINE constexpr bool adds_rows(row_function f) {
  return f >= row_function::sum_layer_norm && f <= row_function::sum_rms_norm_gradient;
}

/// Whether the function is softmax of scores, or its gradient.
SAMEBITS_INLINE constexpr bool is_of_scores(row_function f) {
  return f == row_function::scaled_softmax || f == row_function::scaled_softmax_gradient;
}

/// The same function, which adds no rows and has no scores.
SAMEBITS_INLINE constexpr row_function plain_function(row_function f) {
  if (f == row_function::scaled_softmax) return row_function::softmax;
  if (f == row_function::scaled_softmax_gradient) return row_function::softmax_gradient;
  constexpr int distance =
      static_cast<int>(row_function::sum_layer_norm) - static_cast<int>(row_function::layer_norm);
  return adds_rows(f) ? static_cast<row_function>(static_cast<int>(f) - distance) : f;
}

/// A checked call. Views that the function lacks have no data.
struct row_call {
  row_function of = row_function::softmax;
  function_rule rule = function_rule::torch_2_11;
  std::uint32_t epsilon = 0;    ///< binary32
  std::int64_t offset = 0;      ///< 0..7 elements from a 16-byte boundary to the added tensor
  int num_warps = 4;            ///< of triton_3_6
  int elements_per_thread = 4;  ///< of triton_3_6
  const_matrix_view grad = {};  ///< of norms of sums: the added rows
  const_matrix_view in = {};    ///< of softmax's gradients: softmax's result
  const_matrix_view weight = {};
  const_matrix_view bias = {};
  const_matrix_view mean = {};  ///< of layer_norm: written, if there is data
  const_matrix_view rstd = {};  ///< of layer_norm and rms_norm: written, if there is data
  matrix_view sum = {};         ///< of norms of sums: written
  matrix_view out = {};
  bool has_scores = false;                       ///< of softmax and softmax_gradient
  numerics::torch_2_11::score_rule scores = {};  ///< if has_scores
  const_matrix_view mask = {};                   ///< of scores
};

/// What the orders of a call's sums depend on.
struct row_orders {
  row_function of;
  function_rule rule;
  format_id format;
  int num_warps;
  int elements_per_thread;
  std::int64_t n;       ///< elements of a row
  std::int64_t offset;  ///< as in row_call
  bool vectors;         ///< of the norms: has_vectors_of_4()

  /// Whether all rows have the order of row 0.
  [[nodiscard]] constexpr bool are_one() const {
    return rule == function_rule::triton_3_6 || is_norm(of) ||
           n % numerics::torch_2_11::vector_of(format) == 0;
  }
  /// The order of one row's sums.
  [[nodiscard]] SAMEBITS_HD constexpr numerics::torch_2_11::row_order of_row(
      std::int64_t row) const {
    namespace torch = numerics::torch_2_11;
    if (rule == function_rule::triton_3_6) {
      return numerics::triton_3_6::sum_order(n, num_warps, elements_per_thread);
    }
    if (is_norm(of)) {
      if (is_gradient(of) || vectors) return torch::layer_norm_gradient_order(n);
      return {torch::scalar_layer_norm_threads, torch::thread_sums::warps};
    }
    const std::int64_t shift = (offset + row * n) % torch::vector_of(format);
    return is_gradient(of) ? torch::softmax_gradient_order(format, n, shift)
                           : torch::softmax_order(format, n, shift);
  }
};
inline row_orders orders_of(const row_call& call) {
  const std::int64_t n = call.out.cols;
  return {call.of,
          call.rule,
          call.out.format,
          call.num_warps,
          call.elements_per_thread,
          n,
          call.offset,
          numerics::torch_2_11::has_vectors_of_4(n, call.offset)};
}

/// A checked call of cross_entropy() without label smoothing, of its gradient or of both, on device
/// memory.
struct cross_entropy_call {
  numerics::torch_2_11::cross_entropy_rule rule;  ///< without the number of counted rows
  std::int64_t ignore_index;
  std::int64_t offset;  ///< as in row_call
  const_matrix_view in;
  const std::int64_t* targets;  ///< in device memory
  matrix_view loss = {};        ///< written; data only if it is wanted
  const_matrix_view grad = {};  ///< of the loss; data only if the gradient is wanted
  matrix_view out = {};         ///< the gradient of `in`, written
  /// Nothing is written if `grad` is equal to it; no data: written in any case.
  const_matrix_view known_grad = {};
};

/// Words behind the n words of a row that kernels may read and overwrite.
inline constexpr std::int64_t row_padding = 128;

/// One row of a call. All words are binary32 bits, except as noted.
struct row_task {
  row_function of;
  function_rule rule;
  format_id format;
  std::int64_t n;
  numerics::torch_2_11::row_order order;        ///< of the row's sums, except layer_norm's
  bool vectors;                                 ///< of the norms: has_vectors_of_4()
  std::uint32_t epsilon;                        ///< of the norms
  const std::uint32_t* weight;                  ///< may be null; padded
  const std::uint32_t* bias;                    ///< may be null; padded
  numerics::torch_2_11::row_statistics* norms;  ///< the norms write, their gradients read
  /// Codes of the row; of the result, unless the function is a gradient. Padded.
  std::uint32_t* x;
  /// Codes of the gradient of the result, then of the row's. Scratch memory of all other functions.
  /// Padded.
  std::uint32_t* grad;
  /// Of softmax and its gradient; null: the row has no scores.
  const numerics::torch_2_11::score_rule* scores = nullptr;
  /// Codes or bytes of the scores' mask; of a gradient: not 0 where a score is hidden. Padded.
  std::uint32_t* mask = nullptr;
  std::int64_t visible = 0;  ///< columns before the hidden ones above the diagonal
};

/// Computes one row.
using row_kernel = void (*)(const row_task& task);

}  // namespace samebits::backends
