// Loss scale: the native policy, a power of two that steps by one (contract §8).
//
// Three kinds of evidence, and what each moves:
//   a bad step within probe_window of a growth   the growth was too much: one back, interval x 2
//   `hysteresis` bad steps, never forgive_after  the scale is too high: one back, and one for each
//   good ones between them                       further bad step
//   fewer bad steps than that                    an accident: the scale stays, growth comes later
// The reference is the highest level that has carried `proof` good steps. A fall from such a level
// leaves it in place, and below it recovery_interval good steps are enough to climb.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/layout.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/loss_scaling.hpp"

namespace samebits::numerics {

/// 2^e as binary32 bits, e in -126 .. 127.
SAMEBITS_INLINE constexpr std::uint32_t power_of_two(std::int32_t e) {
  return static_cast<std::uint32_t>(e + binary<std::uint32_t>::bias) << 23;
}

/// floor(log2(x)) of finite binary32 bits without sign; below every other for zero.
SAMEBITS_INLINE constexpr std::int32_t binade_of(std::uint32_t x) {
  if (x == 0) return -150;
  return binary32::split(x).exponent + 23;
}

/// floor(log2) of a format's largest finite value.
SAMEBITS_INLINE constexpr std::int32_t top_binade(const format_spec& f) {
  return binade_of(decode<std::uint32_t>(f, static_cast<std::uint32_t>(max_finite(f))));
}

SAMEBITS_INLINE constexpr std::uint32_t one_more(std::uint32_t count) {
  return count == 0xFFFFFFFFu ? count : count + 1;
}

/// What every policy sees in an observation.
SAMEBITS_INLINE constexpr step_cause cause_of(const step_observation& seen) {
  const bool known = seen.amax != amax_unknown;
  const std::uint32_t amax = binary32::magnitude(seen.amax);
  step_cause cause = seen.nonfinite ? step_cause::nonfinite : step_cause::none;
  if (known && amax == binary32::inf) cause = step_cause::overflow;
  if (known && amax > binary32::inf) cause = step_cause::nan;
  return cause != step_cause::none && seen.loss_nonfinite ? step_cause::loss : cause;
}

/// And the native policy: where 2^-e multiplies up, finite gradients may leave binary32 or the
/// format they are kept in. Rounding is monotone: the largest decides for all. No lower scale would
/// help.
SAMEBITS_INLINE constexpr step_cause cause_of(const native_scaling&, const native_state& state,
                                              const step_observation& seen) {
  const step_cause cause = cause_of(seen);
  if (cause != step_cause::none) return cause;
  if (seen.unscaled_nonfinite) return step_cause::unscaled;
  if (seen.amax == amax_unknown) return step_cause::none;
  const std::uint32_t unscaled =
      binary32::multiply(binary32::magnitude(seen.amax), power_of_two(-state.exponent));
  return unscaled >= binary32::inf ? step_cause::unscaled : step_cause::none;
}

/// One down, to a level that has proved nothing yet.
SAMEBITS_INLINE constexpr scale_change lower(const native_scaling& settings, native_state& state) {
  state.good = 0;
  if (state.exponent <= settings.min_exponent) return scale_change::at_minimum;
  --state.exponent;
  state.proven = 0;
  return scale_change::backed_off;
}

/// Where the reference goes when strikes run out: it stays with a level that had proved itself,
/// else comes half way down to the next lower one.
SAMEBITS_INLINE constexpr std::int32_t reference_after_fall(const native_scaling& settings,
                                                            const native_state& state) {
  if (state.proven != 0) return state.reference > state.exponent ? state.reference : state.exponent;
  const std::int32_t below =
      state.exponent > settings.min_exponent ? state.exponent - 1 : state.exponent;
  return state.reference > below ? below + (state.reference - below) / 2 : below;
}

/// A bad step that speaks against the scale.
SAMEBITS_INLINE constexpr scale_change doubt(const native_scaling& settings, native_state& state) {
  state.calm = 0;
  if (state.probe_age >= 0) {
    const scale_change change = lower(settings, state);
    state.probe_age = -1;
    state.refuted = 1;
    state.strikes = 0;
    state.reference = state.exponent;
    state.interval = state.interval > settings.growth_interval_max / 2
                         ? settings.growth_interval_max
                         : state.interval * 2;
    return change;
  }
  state.strikes = one_more(state.strikes);
  if (state.strikes < settings.hysteresis) {
    state.good -= state.good < settings.isolated_cost ? state.good : settings.isolated_cost;
    return scale_change::kept;
  }
  if (state.strikes == settings.hysteresis) {
    state.reference = reference_after_fall(settings, state);
  }
  return lower(settings, state);
}

/// The largest recent unscaled gradient, in two windows: the running one and the one before.
SAMEBITS_INLINE constexpr void note_peak(const native_scaling& settings, native_state& state,
                                         std::uint32_t amax) {
  const std::int32_t binade = binade_of(binary32::magnitude(amax)) - state.exponent;
  if (state.peak_age >= settings.headroom_window) {
    state.peak_before = state.peak;
    state.peak = native_state::no_peak;
    state.peak_age = 0;
  }
  state.peak = binade > state.peak ? binade : state.peak;
  ++state.peak_age;
}

/// Good steps needed before the scale may grow, or 0 where it must not.
SAMEBITS_INLINE constexpr std::uint32_t steps_to_growth(const native_scaling& settings,
                                                        const native_state& state) {
  const std::uint32_t need =
      state.exponent < state.reference ? settings.recovery_interval : state.interval;
  if (settings.growth_headroom == headroom::off || state.peak == native_state::no_peak) return need;
  const std::int32_t peak = state.peak > state.peak_before ? state.peak : state.peak_before;
  const std::int32_t spare = top_binade(spec_of(settings.gradient_format)) -
                             settings.headroom_bits - (peak + state.exponent + 1);
  if (spare < 0) return 0;
  // Far from the edge throughout a whole window: no reason to wait for the interval. Unless growth
  // has failed all the same: then something overflows that is not among these gradients, such as
  // those of activations.
  const bool certain =
      spare > 0 && state.peak_before != native_state::no_peak && state.refuted == 0;
  return certain && settings.recovery_interval < need ? settings.recovery_interval : need;
}

/// A good step.
SAMEBITS_INLINE constexpr scale_change confirm(const native_scaling& settings, native_state& state,
                                               std::uint32_t amax) {
  state.skipped_run = 0;
  state.good = one_more(state.good);
  state.calm = one_more(state.calm);
  if (state.calm >= settings.forgive_after) state.strikes = 0;
  if (amax != amax_unknown) note_peak(settings, state, amax);
  if (state.probe_age >= 0 &&
      static_cast<std::uint32_t>(++state.probe_age) >= settings.probe_window) {
    state.probe_age = -1;
    state.refuted = 0;
    state.interval = settings.growth_interval;
  }
  if (state.good >= settings.proof) {
    state.proven = 1;
    if (state.reference < state.exponent) state.reference = state.exponent;
  }
  const std::uint32_t need = steps_to_growth(settings, state);
  if (need == 0 || state.good < need || state.probe_age >= 0 ||
      state.exponent >= settings.max_exponent) {
    return scale_change::kept;
  }
  ++state.exponent;
  state.good = 0;
  state.proven = 0;
  state.probe_age = 0;
  return scale_change::grown;
}

/// One step of training: whether it may be applied, and the scale of the next one.
SAMEBITS_INLINE constexpr step_decision advance(const native_scaling& settings, native_state& state,
                                                const step_observation& seen) {
  const step_cause cause = cause_of(settings, state, seen);
  if (cause == step_cause::none) {
    return {true, cause, confirm(settings, state, seen.amax), false};
  }
  state.skipped_run = one_more(state.skipped_run);
  const bool blameless = cause == step_cause::unscaled ||
                         (cause == step_cause::loss && settings.on_loss == loss_fault::hold);
  const scale_change change = blameless ? scale_change::kept : doubt(settings, state);
  const bool exhausted =
      settings.max_skipped_run != 0 && state.skipped_run >= settings.max_skipped_run;
  const bool at_floor =
      change == scale_change::at_minimum && settings.on_minimum == at_minimum::stop;
  return {false, cause, change, exhausted || at_floor};
}

SAMEBITS_INLINE constexpr native_state initial_state(const native_scaling& settings) {
  native_state state;
  state.exponent = settings.init_exponent;
  state.reference = settings.init_exponent;
  state.interval = settings.growth_interval;
  return state;
}

/// The scale in force, as binary64 bits.
SAMEBITS_INLINE constexpr std::uint64_t scale_bits(const native_state& state) {
  return static_cast<std::uint64_t>(state.exponent + binary<std::uint64_t>::bias) << 52;
}

}  // namespace samebits::numerics
