// Decide: a step of a scaler that lives on a device, from what was seen to what the optimizer does.
//
// One thread's work, in integers: the same bits on a host, in a kernel and at compile time.
//
//   norm     = RN64(RN64(sqrt(squares)) * RN32(1 / scale))
//   clip     = RN32(min(1, RN64(max_norm / RN64(norm + 1e-6))))      as
//   torch.nn.utils.clip_grad_norm_ grad_mul = RN32(RN32(1 / scale) * clip)
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

/// A policy's state between steps, and the counts that belong to it.
template <class State>
struct resident_scaler {
  State policy = {};
  std::uint64_t steps = 0;          ///< decided so far
  std::uint64_t applied_steps = 0;  ///< of them: what bias corrections and schedules count
};

/// The norm of the unscaled gradients, binary64 bits; squares is not negative and not NaN.
SAMEBITS_INLINE constexpr std::uint64_t unscaled_norm(std::uint64_t squares,
                                                      std::uint32_t inverse_scale) {
  return binary64::multiply(norm_of(squares), binary64::widen(inverse_scale));
}

/// floor(log2(x)) of binary64 bits without sign; of 0 and of what is not finite, of its nearest
/// neighbour that has one.
SAMEBITS_INLINE constexpr std::int32_t exponent_of(std::uint64_t x) {
  if (x == 0) return -1074;
  return x >= binary64::inf ? 1023 : binary64::split(x).exponent + 52;
}

/// What is common to steps with and without a norm.
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

/// A step without a norm.
template <class Settings, class State>
SAMEBITS_INLINE constexpr step_report decide(const Settings& settings,
                                             resident_scaler<State>& scaler,
                                             const rank_observation& observed) {
  return report_of(settings, scaler, observed);
}

/// A step whose norm is known. A sum of squares that is not finite says that a gradient is not.
template <class Settings, class State>
SAMEBITS_INLINE constexpr step_report decide(const Settings& settings,
                                             resident_scaler<State>& scaler,
                                             const rank_observation& observed,
                                             const norm_clipping& clipping) {
  const std::uint32_t inverse = inverse_scale(scale_bits(scaler.policy));
  const std::uint64_t squares = detail::bits_of(clipping.squares);
  const bool finite = squares < binary64::inf;  // a NaN's bits are above, with a sign too
  rank_observation seen = observed;
  seen.seen.nonfinite = seen.seen.nonfinite || !finite;
  step_report report = report_of(settings, scaler, seen);
  const std::uint64_t norm =
      squares > binary64::inf ? binary64::nan : unscaled_norm(squares, inverse);
  report.norm = detail::number_of(norm);
  if (report.applied) {
    const std::uint64_t most =  // without the sign of a -0
        detail::bits_of(clipping.max_norm) & ~binary<std::uint64_t>::sign_bit;
    const std::uint32_t clip = clip_factor(norm, most);
    report.grad_mul = detail::number_of(binary32::multiply(inverse, clip));
  }
  return report;
}

/// A step that is not decided, because the ranks' scalers are not alike: skipped, the policy's
/// state stays as it is, and the run is to end.
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
