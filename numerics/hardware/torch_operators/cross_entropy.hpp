// Cross entropy: the steps of PyTorch 2.11's operators on log-probabilities that follow the sums.
// Every operator rounds its result to the tensor's format.
// Source: PyTorch's LossNLL.cpp (cross_entropy_loss_label_smoothing) and Loss.cu.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/binary64.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/loss_reduction.hpp"

namespace samebits::numerics::torch_2_11 {

/// How a call of cross_entropy() reduces and smooths, and the shape and format of its logits.
struct cross_entropy_rule {
  format_id format;
  loss_reduction reduction;
  std::uint64_t smoothing;  ///< of the labels, binary64 bits of 0 to 1
  std::int64_t classes;     ///< at least 1 with smoothing
  std::int64_t counted;     ///< rows that are not ignored
  /// Format of the loss and of its gradient. Under CUDA's autocast it is fp32, while log-probabilities
  /// keep the format of the logits.
  format_id loss_format = format;

  [[nodiscard]] SAMEBITS_HD constexpr bool reduces() const {
    return reduction != loss_reduction::none;
  }
  [[nodiscard]] SAMEBITS_HD constexpr bool smooths() const { return smoothing << 1 != 0; }
  [[nodiscard]] SAMEBITS_HD constexpr std::uint32_t count() const {
    return binary32::round(false, static_cast<std::uint64_t>(counted), 0);
  }
  /// x * factor, where the factor is binary64 bits.
  [[nodiscard]] SAMEBITS_HD constexpr std::uint32_t scaled(std::uint32_t x,
                                                           std::uint64_t factor) const {
    return stored(format, ptx::mul(x, binary64::narrow(factor)));
  }
  /// x * (1 - smoothing): the part of the targets.
  [[nodiscard]] SAMEBITS_HD constexpr std::uint32_t of_target(std::uint32_t x) const {
    return scaled(x, binary64::subtract(binary64::one, smoothing));
  }
  /// x * (smoothing / classes): the part of all classes.
  [[nodiscard]] SAMEBITS_HD constexpr std::uint32_t of_class(std::uint32_t x) const {
    const std::uint64_t all = encode_scaled(spec_of(format_id::fp64), cast_rule{}, false,
                                            static_cast<std::uint64_t>(classes), 0, 0)
                                  .code;
    return scaled(x, binary64::divide(smoothing, all));
  }
  /// x divided by the number of rows if the loss is a mean. Unlike nll_loss, this operator divides by
  /// a number of the loss's format.
  [[nodiscard]] SAMEBITS_HD constexpr std::uint32_t mean(std::uint32_t x) const {
    if (reduction != loss_reduction::mean) return x;
    return stored(loss_format, ptx::div(x, stored(loss_format, count())));
  }
};

/// nll_loss from nll_sum().
SAMEBITS_HD constexpr std::uint32_t nll_loss(const cross_entropy_rule& r, std::uint32_t sum) {
  return stored(r.loss_format,
                r.reduction == loss_reduction::mean ? ptx::div(sum, r.count()) : sum);
}

/// The loss with smoothing. smooth: the negative sum of the log-probabilities, reduced as
/// cross_entropy_rule::mean() does.
SAMEBITS_HD constexpr std::uint32_t smoothed_loss(const cross_entropy_rule& r,
                                                  std::uint32_t likelihood, std::uint32_t smooth) {
  return stored(r.format, ptx::add(r.of_target(likelihood), r.of_class(smooth)));
}

/// The gradients of a row's log-probabilities: at the target, and elsewhere.
struct loss_gradient {
  std::uint32_t target, others;
};

/// @param grad  the gradient of the loss, or of the row's loss
/// @param ignored  whether the row has no target: its `target` is then not used
SAMEBITS_HD constexpr loss_gradient loss_gradient_of(const cross_entropy_rule& r,
                                                     std::uint32_t grad, bool ignored) {
  if (ignored) return {0, 0};
  const std::uint32_t likelihood = ptx::neg(r.mean(r.smooths() ? r.of_target(grad) : grad));
  if (!r.smooths()) return {stored(r.format, likelihood), 0};
  const std::uint32_t smooth = ptx::neg(r.mean(r.of_class(grad)));
  return {stored(r.format, ptx::add(likelihood, smooth)), smooth};
}

}  // namespace samebits::numerics::torch_2_11
