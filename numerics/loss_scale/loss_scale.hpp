// Loss scale: the native policy. The scale is a power of two that changes by one power at a time
// (contract §8).
//
// Each kind of evidence has its own effect:
//   a bad step within probe_window of a growth   the growth went too far: scale / 2, interval x 2
//   `hysteresis` bad steps, with fewer than      the scale is too high: scale / 2, and again for
//   forgive_after good steps between them        each further bad step
//   fewer bad steps than `hysteresis`            an accident: the scale stays, growth comes later
// The reference is the highest exponent at which `proof` good steps have succeeded. A fall from a
// proven exponent leaves the reference unchanged. Below the reference, recovery_interval good steps
// are enough to grow.
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

/// floor(log2(x)) of finite binary32 bits without sign. Zero gives -150, below every other result.
SAMEBITS_INLINE constexpr std::int32_t binade_of(std::uint32_t x) {
  if (x == 0) return -150;
  return binary32::split(x).exponent + 23;
}

/// floor(log2) of a format's largest finite value.
SAMEBITS_INLINE constexpr std::int32_t top_binade(const format_spec& f) {
  return binade_of(decode<std::uint32_t>(f, static_cast<std::uint32_t>(max_finite(f))));
}

/// count + 1; stays at 2^32 - 1.
SAMEBITS_INLINE constexpr std::uint32_t one_more(std::uint32_t count) {
  return count == 0xFFFFFFFFu ? count : count + 1;
}

/// The cause that every policy derives from an observation.
SAMEBITS_INLINE constexpr step_cause cause_of(const step_observation& seen) {
  const bool known = seen.amax != amax_unknown;
  const std::uint32_t amax = binary32::magnitude(seen.amax);
  step_cause cause = seen.nonfinite ? step_cause::nonfinite : step_cause::none;
  if (known && amax == binary32::inf) cause = step_cause::overflow;
  if (known && amax > binary32::inf) cause = step_cause::nan;
  return cause != step_cause::none && seen.loss_nonfinite ? step_cause::loss : cause;
}

/// The cause under the native policy. For a scale below 1 the unscaled gradients are larger than
/// the scaled ones. A finite gradient may then overflow binary32 or the format that stores it.
/// Rounding is monotone, so the largest gradient decides for all. A lower scale would not help.
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

/// Lowers the exponent by one. The new exponent is not proven.
SAMEBITS_INLINE constexpr scale_change lower(const native_scaling& settings, native_state& state) {
  state.good = 0;
  if (state.exponent <= settings.min_exponent) return scale_change::at_minimum;
  --state.exponent;
  state.proven = 0;
  return scale_change::backed_off;
}

/// The new reference when the number of bad steps reaches `hysteresis`. After a fall from a proven
/// exponent the reference does not fall below this exponent. Otherwise the reference moves half way
/// down to the new exponent.
SAMEBITS_INLINE constexpr std::int32_t reference_after_fall(const native_scaling& settings,
                                                            const native_state& state) {
  if (state.proven != 0) return state.reference > state.exponent ? state.reference : state.exponent;
  const std::int32_t below =
      state.exponent > settings.min_exponent ? state.exponent - 1 : state.exponent;
  return state.reference > below ? below + (state.reference - below) / 2 : below;
}

/// Handles a bad step for which the scale may be to blame.
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

/// Records the largest recent unscaled gradient in two windows: the current window and the previous
/// one.
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

/// Number of good steps needed before the scale may grow; 0 if it must not grow.
SAMEBITS_INLINE constexpr std::uint32_t steps_to_growth(const native_scaling& settings,
                                                        const native_state& state) {
  const std::uint32_t need =
      state.exponent < state.reference ? settings.recovery_interval : state.interval;
  if (settings.growth_headroom == headroom::off || state.peak == native_state::no_peak) return need;
  const std::int32_t peak = state.peak > state.peak_before ? state.peak : state.peak_before;
  const std::int32_t spare = top_binade(spec_of(settings.gradient_format)) -
                             settings.headroom_bits - (peak + state.exponent + 1);
  if (spare < 0) return 0;
  // All gradients of a whole window were far from overflow: growth need not wait for the interval.
  // After a failed growth this shortcut is off, because something other than these gradients
  // overflowed, such as gradients of activations.
  const bool certain =
      spare > 0 && state.peak_before != native_state::no_peak && state.refuted == 0;
  return certain && settings.recovery_interval < need ? settings.recovery_interval : need;
}

/// Handles a good step.
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

/// Decides one training step: whether to apply it, and the scale of the next step.
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

/// The state before the first step.
SAMEBITS_INLINE constexpr native_state initial_state(const native_scaling& settings) {
  native_state state;
  state.exponent = settings.init_exponent;
  state.reference = settings.init_exponent;
  state.interval = settings.growth_interval;
  return state;
}

/// The current scale, as binary64 bits.
SAMEBITS_INLINE constexpr std::uint64_t scale_bits(const native_state& state) {
  return static_cast<std::uint64_t>(state.exponent + binary<std::uint64_t>::bias) << 52;
}

}  // namespace samebits::numerics
