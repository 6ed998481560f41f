// Decide: one step of a loss scaler whose state is in device memory. Turns an observation into the
// decision that the optimizer follows.
//
// One thread computes it in integers: the same bits on a host, in a kernel and at compile time.
//
//   norm     = RN64(RN64(sqrt(squares)) * RN32(1 / scale))
//   clip     = RN32(min(1, RN64(max_norm / RN64(norm + 1e-6))))
//              as torch.nn.utils.clip_grad_norm_
//   grad_mul = RN32(RN32(1 / scale) * clip)
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/binary64.hpp"
#include "numerics/loss_scale/loss_scale.hpp"
#include "numerics/loss_scale/loss_scale_compat.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/loss_scaling.hpp"
#include "samebits/core/step_report.hpp"

namespace samebits::numerics {

/// A policy's state between steps, and the step counters.
template <class State>
struct resident_scaler {
  State policy = {};
  std::uint64_t steps = 0;  ///< steps decided so far
  /// Steps applied so far; bias corrections and schedules use this count.
  std::uint64_t applied_steps = 0;
};

/// The norm of the unscaled gradients as binary64 bits. Requires `squares` >= 0 and not NaN.
SAMEBITS_INLINE constexpr std::uint64_t unscaled_norm(std::uint64_t squares,
                                                      std::uint32_t inverse_scale) {
  return binary64::multiply(norm_of(squares), binary64::widen(inverse_scale));
}

/// floor(log2(x)) of binary64 bits without sign. 0 gives the exponent of the smallest subnormal,
/// -1074; Inf and NaN give the largest exponent, 1023.
SAMEBITS_INLINE constexpr std::int32_t exponent_of(std::uint64_t x) {
  if (x == 0) return -1074;
  return x >= binary64::inf ? 1023 : binary64::split(x).exponent + 52;
}

/// The part of a step that is the same with and without a norm.
template <class Settings, class State>
SAMEBITS_INLINE constexpr step_report report_of(const Settings& settings,
                                                resident_scaler<State>& scaler,
                                                const rank_observation& observed) {
  const std::uint64_t scale = scale_bits(scaler.policy);
  const step_decision decision = advance(settings, scaler.policy, observed.seen);
  step_report report;
  report.step = scaler.steps++;
  if (decision.apply) ++scaler.applied_steps;
  report.applied_steps = scaler.applied_steps;
  report.scale = detail::number_of(scale);
  report.norm = detail::number_of(binary64::nan);
  report.first_bad = observed.first_bad;
  report.bad_rank = observed.bad_rank;
  if (decision.apply) report.grad_mul = detail::number_of(inverse_scale(scale));
  report.amax_bits = observed.seen.amax;
  report.exponent = exponent_of(scale);
  report.applied = decision.apply;
  report.stop = decision.stop;
  report.cause = decision.cause;
  report.change = decision.change;
  return report;
}

/// Decides a step without a norm.
template <class Settings, class State>
SAMEBITS_INLINE constexpr step_report decide(const Settings& settings,
                                             resident_scaler<State>& scaler,
                                             const rank_observation& observed) {
  return report_of(settings, scaler, observed);
}

/// Decides a step whose norm is known. A non-finite sum of squares means that a gradient is
/// non-finite.
template <class Settings, class State>
SAMEBITS_INLINE constexpr step_report decide(const Settings& settings,
                                             resident_scaler<State>& scaler,
                                             const rank_observation& observed,
                                             const norm_clipping& clipping) {
  const std::uint32_t inverse = inverse_scale(scale_bits(scaler.policy));
  const std::uint64_t squares = detail::bits_of(clipping.squares);
  const bool finite = squares < binary64::inf;  // the bits of a NaN of either sign are above inf
  rank_observation seen = observed;
  seen.seen.nonfinite = seen.seen.nonfinite || !finite;
  step_report report = report_of(settings, scaler, seen);
  const std::uint64_t norm =
      squares > binary64::inf ? binary64::nan : unscaled_norm(squares, inverse);
  report.norm = detail::number_of(norm);
  if (report.applied) {
    const std::uint64_t maximum =  // sign cleared, so that -0 becomes 0
        detail::bits_of(clipping.max_norm) & ~binary<std::uint64_t>::sign_bit;
    const std::uint32_t clip = clip_factor(norm, maximum);
    report.grad_mul = detail::number_of(binary32::multiply(inverse, clip));
  }
  return report;
}

/// The report of a step that cannot be decided because the ranks' scalers differ. The step is
/// skipped, the policy's state stays unchanged, and the report asks the run to stop.
template <class State>
SAMEBITS_INLINE constexpr step_report refused_step(resident_scaler<State>& scaler,
                                                   const rank_observation& observed) {
  const std::uint64_t scale = scale_bits(scaler.policy);
  step_report report;
  report.step = scaler.steps++;
  report.applied_steps = scaler.applied_steps;
  report.scale = detail::number_of(scale);
  report.norm = detail::number_of(binary64::nan);
  report.first_bad = observed.first_bad;
  report.bad_rank = observed.bad_rank;
  report.amax_bits = observed.seen.amax;
  report.exponent = exponent_of(scale);
  report.stop = true;
  report.cause = step_cause::ranks_differ;
  return report;
}

}  // namespace samebits::numerics
