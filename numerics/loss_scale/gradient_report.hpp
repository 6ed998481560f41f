// Gradient report: what one optimizer's gradients look like, and the factor that they are
// multiplied by. Scaler words: the scale for the coming step. Both are plain data that lies in host
// or device memory; the update of a scale reads them.
//
// One thread computes everything here in integers: the same bits on a host and in a kernel.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/binary64.hpp"
#include "numerics/loss_scale/decide.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/step_report.hpp"

namespace samebits::numerics {

/// The scale of the coming step. Fields are the bits of samebits_scaler_words.
struct scaler_words {
  std::uint32_t scale = binary32::one;    ///< binary32: the factor of the loss
  std::uint32_t inverse = binary32::one;  ///< binary32: RN(1 / scale)
  /// Binary32: not zero if a loss was Inf or NaN since the last update.
  std::uint32_t bad_loss = 0;
  std::uint32_t stop = 0;  ///< 1: the policy ends the run
};

/// What one optimizer's gradients look like. Fields are the bits of samebits_gradient_report.
struct gradient_report {
  std::uint64_t norm = binary64::nan;  ///< binary64: of the unscaled gradients; NaN if not computed
  std::int64_t first_bad = -1;         ///< number of the first bad tensor; -1: none
  std::uint32_t found_inf = 0;         ///< binary32: 1 if the optimizer must skip its step, else 0
  std::uint32_t amax = 0;              ///< binary32: of the scaled gradients
  std::uint32_t nonfinite = 0;         ///< 1: a scaled gradient was Inf or NaN
  std::uint32_t overflowed = 0;        ///< 1: unscaling made a finite gradient Inf
  std::uint32_t factor = binary32::one;  ///< binary32: RN(1 / scale) times the clip factor
  /// Binary32: scale / clip factor. Optimizers divide the scaled gradients by it.
  std::uint32_t divisor = binary32::one;
  std::uint32_t writes = 0;  ///< 1: the gradients are multiplied by `factor`
  std::uint32_t reserved = 0;
};
static_assert(sizeof(scaler_words) == 16 && sizeof(gradient_report) == 48);

/// How gradients are unscaled.
struct unscale_rule {
  std::uint64_t max_norm = binary64::inf;  ///< binary64; Inf: no clipping
  std::int64_t first = 0;       ///< number of the list's first tensor, added to first_bad
  bool rewrites = true;         ///< the gradients are multiplied; if not, they are only read
  bool only_clips = false;      ///< gradients whose norm is not finite, or small, stay as they are
  bool skips_overflow = false;  ///< the policy skips steps whose gradients unscaling overflows
};

/// The report after a pass that only read the gradients: `squares` is the sum of the squares of the
/// scaled gradients (binary64), first_bad the first tensor with Inf or NaN, or -1.
SAMEBITS_INLINE constexpr gradient_report report_of_inspection(const scaler_words& words,
                                                               const unscale_rule& rule,
                                                               std::uint64_t squares,
                                                               std::uint32_t amax,
                                                               std::int64_t first_bad) {
  gradient_report r;
  const bool finite = squares < binary64::inf && first_bad < 0;
  r.norm = squares > binary64::inf ? binary64::nan : unscaled_norm(squares, words.inverse);
  std::uint32_t clip = finite ? clip_factor(r.norm, rule.max_norm) : binary32::one;
  if (binary32::is_nan(clip)) clip = binary32::one;  // a scale of 0, or Inf / Inf
  r.amax = binary32::magnitude(amax);
  r.nonfinite = finite ? 0 : 1;
  r.overflowed = finite && binary32::multiply(r.amax, words.inverse) >= binary32::inf ? 1 : 0;
  if (first_bad >= 0) r.first_bad = first_bad + rule.first;
  const bool skip = !finite || (rule.skips_overflow && r.overflowed != 0);
  r.found_inf = skip ? binary32::one : 0;
  r.factor = binary32::multiply(words.inverse, clip);
  r.divisor = clip == binary32::one ? words.scale : binary32::divide(words.scale, clip);
  r.writes = rule.rewrites && (!rule.only_clips || (finite && clip != binary32::one)) ? 1 : 0;
  return r;
}

/// The report after the gradients were unscaled. `nonfinite` elements were Inf or NaN before;
/// `overflowed` elements were finite before and not after. first_bad: the first tensor with an
/// element of either kind, or -1.
SAMEBITS_INLINE constexpr gradient_report report_of_unscaling(
    const scaler_words& words, const unscale_rule& rule, std::uint64_t nonfinite,
    std::uint64_t overflowed, std::uint32_t amax, std::int64_t first_bad) {
  gradient_report r;
  r.amax = binary32::magnitude(amax);
  r.nonfinite = nonfinite != 0 ? 1 : 0;
  r.overflowed = overflowed != 0 ? 1 : 0;
  const bool skip = nonfinite != 0 || (rule.skips_overflow && overflowed != 0);
  if (skip) r.first_bad = first_bad + rule.first;
  r.found_inf = skip ? binary32::one : 0;
  r.factor = words.inverse;
  r.divisor = words.scale;
  r.writes = 1;
  return r;
}

/// The reports of all optimizers of a step together: the policy's observation, and the norm, which
/// is NaN if any norm is.
struct combined_reports {
  rank_observation seen = {};
  std::uint64_t norm = 0;

  SAMEBITS_HD constexpr combined_reports(const scaler_words& words, const gradient_report* reports,
                                         std::uint64_t count) {
    std::uint64_t squares = 0;
    bool known = true;
    for (std::uint64_t i = 0; i < count; ++i) {
      const gradient_report& r = reports[i];
      // found_inf may be set from outside, as frameworks do that combine it over ranks.
      const bool flagged = r.found_inf != 0 && r.overflowed == 0;
      seen.seen.nonfinite = seen.seen.nonfinite || r.nonfinite != 0 || flagged;
      seen.seen.unscaled_nonfinite = seen.seen.unscaled_nonfinite || r.overflowed != 0;
      if (seen.seen.amax < r.amax) seen.seen.amax = r.amax;
      if (seen.first_bad < 0) seen.first_bad = r.first_bad;
      known = known && r.norm <= binary64::inf;
      if (known) squares = binary64::add(squares, binary64::multiply(r.norm, r.norm));
    }
    norm = count == 1 ? reports[0].norm : known ? norm_of(squares) : binary64::nan;
    seen.seen.loss_nonfinite = binary32::magnitude(words.bad_loss) != 0;
  }
};

/// The words of the step that follows a report.
template <class State>
SAMEBITS_INLINE constexpr scaler_words next_words(const resident_scaler<State>& scaler,
                                                  const step_report& report) {
  const std::uint64_t scale = scale_bits(scaler.policy);
  return {binary64::narrow(scale), inverse_scale(scale), 0, report.stop ? 1u : 0u};
}

/// Ends a step: advances the policy, writes the words of the coming step, and returns the report.
template <class Settings, class State>
SAMEBITS_INLINE constexpr step_report end_step(const Settings& settings,
                                               resident_scaler<State>& scaler, scaler_words& words,
                                               const gradient_report* reports,
                                               std::uint64_t count) {
  const combined_reports all(words, reports, count);
  step_report report = decide(settings, scaler, all.seen);
  report.norm = detail::number_of(all.norm);
  if (report.applied && count == 1) report.grad_mul = detail::number_of(reports[0].factor);
  words = next_words(scaler, report);
  return report;
}

}  // namespace samebits::numerics
