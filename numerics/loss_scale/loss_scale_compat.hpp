// Loss scale, policies of other libraries: reproduces their arithmetic, counters and off-by-one
// errors step by step.
//
// Sources (commits in docs/loss_scaling.md):
//   pytorch      aten/src/ATen/native/cuda/AmpKernels.cu
//   apex         csrc/update_scale_hysteresis.cu and apex/amp/scaler.py
//   Megatron-LM  megatron/core/optimizer/grad_scaler.py
//   DeepSpeed    deepspeed/runtime/fp16/loss_scaler.py
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/binary64.hpp"
#include "numerics/loss_scale/loss_scale.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/loss_scaling.hpp"

namespace samebits::numerics {

using detail::bits_of;
using detail::number_of;

/// A binary32 scale times a binary64 factor: multiplied in binary64, then rounded to binary32.
SAMEBITS_INLINE constexpr std::uint32_t times(std::uint32_t scale, std::uint64_t factor) {
  return binary64::narrow(binary64::multiply(binary64::widen(scale), factor));
}

/// The reported change of a scale that a policy tried to lower (lowered) or to raise (raised).
template <class Bits>
SAMEBITS_INLINE constexpr scale_change lowered(Bits before, Bits after) {
  return before == after ? scale_change::at_minimum : scale_change::backed_off;
}
template <class Bits>
SAMEBITS_INLINE constexpr scale_change raised_from(Bits before, Bits after) {
  return before == after ? scale_change::kept : scale_change::grown;
}

/// The update rule that torch and apex share. Back-off has no lower limit but zero; growth stops
/// before Inf.
template <class Settings, class State>
SAMEBITS_INLINE constexpr scale_change amp_update(const Settings& settings, State& state,
                                                  bool bad) {
  const std::uint32_t before = bits_of(state.scale);
  if (bad) {
    const std::uint32_t after = times(before, bits_of(settings.backoff_factor));
    state.scale = number_of(after);
    state.growth_tracker = 0;
    return lowered(before, after);
  }
  if (++state.growth_tracker != settings.growth_interval) return scale_change::kept;
  state.growth_tracker = 0;
  const std::uint32_t after = times(before, bits_of(settings.growth_factor));
  if (after >= binary32::inf) return scale_change::kept;
  state.scale = number_of(after);
  return raised_from(before, after);
}

SAMEBITS_INLINE constexpr step_decision advance(const torch_scaling& settings, torch_state& state,
                                                const step_observation& seen) {
  const step_cause cause = cause_of(seen);
  const bool bad = cause != step_cause::none;
  return {!bad, cause, amp_update(settings, state, bad), false};
}

/// Every good step refills the hysteresis counter, so only consecutive bad steps count.
SAMEBITS_INLINE constexpr step_decision advance(const apex_scaling& settings, apex_state& state,
                                                const step_observation& seen) {
  const step_cause cause = cause_of(seen);
  const bool bad = cause != step_cause::none;
  if (bad && --state.hysteresis_tracker > 0) {
    state.growth_tracker = 0;
    return {false, cause, scale_change::kept, false};
  }
  const scale_change change = amp_update(settings, state, bad);
  if (!bad) state.hysteresis_tracker = settings.hysteresis;
  return {!bad, cause, change, false};
}

/// The growth window is also checked after bad steps.
SAMEBITS_INLINE constexpr step_decision advance(const apex_amp_scaling& settings,
                                                apex_amp_state& state,
                                                const step_observation& seen) {
  const step_cause cause = cause_of(seen);
  const bool bad = cause != step_cause::none;
  const std::uint64_t before = bits_of(state.scale);
  scale_change change = scale_change::kept;
  if (bad) {
    const std::uint64_t floor = bits_of(settings.min_loss_scale);
    const std::uint64_t half = binary64::divide(before, binary64::two);
    const std::uint64_t after = half > floor ? half : floor;
    state.scale = number_of(after);
    state.unskipped = 0;
    change = after < before ? scale_change::backed_off : scale_change::at_minimum;
  } else {
    ++state.unskipped;
  }
  if (state.unskipped == settings.scale_window) {
    const std::uint64_t present = bits_of(state.scale);
    const std::uint64_t doubled = binary64::multiply(present, binary64::two);
    const std::uint64_t ceiling = bits_of(settings.max_loss_scale);
    state.scale = number_of(doubled < ceiling ? doubled : ceiling);
    state.unskipped = 0;
    if (!bad) change = raised_from(before, bits_of(state.scale));
  }
  return {!bad, cause, change, false};
}

/// Megatron-LM. Only growth refills the hysteresis counter, so bad steps add up across many good
/// steps. Growth factor, backoff factor and minimum scale are rounded to binary32 before use,
/// because Megatron-LM keeps them in binary32 tensors.
SAMEBITS_INLINE constexpr step_decision advance(const megatron_scaling& settings,
                                                megatron_state& state,
                                                const step_observation& seen) {
  const step_cause cause = cause_of(seen);
  const bool bad = cause != step_cause::none;
  const std::uint32_t before = bits_of(state.scale);
  scale_change change = scale_change::kept;
  if (bad) {
    state.growth_tracker = 0;
    if (--state.hysteresis_tracker <= 0) {
      const std::uint32_t floor = binary64::narrow(bits_of(settings.min_scale));
      const std::uint32_t factor = binary64::narrow(bits_of(settings.backoff_factor));
      const std::uint32_t less = binary32::multiply(before, factor);
      const std::uint32_t after = less > floor ? less : floor;
      state.scale = number_of(after);
      change = lowered(before, after);
    }
  } else if (++state.growth_tracker == settings.growth_interval) {
    const std::uint32_t factor = binary64::narrow(bits_of(settings.growth_factor));
    const std::uint32_t after = binary32::multiply(before, factor);
    state.growth_tracker = 0;
    state.hysteresis_tracker = settings.hysteresis;
    state.scale = number_of(after);
    change = raised_from(before, after);
  }
  return {!bad, cause, change, false};
}

/// Where DeepSpeed raises an exception, nothing changes and the decision says stop.
SAMEBITS_INLINE constexpr step_decision advance(const deepspeed_scaling& settings,
                                                deepspeed_state& state,
                                                const step_observation& seen) {
  const step_cause cause = cause_of(seen);
  const bool bad = cause != step_cause::none;
  const std::uint64_t before = bits_of(state.scale);
  const std::uint64_t factor = bits_of(settings.scale_factor);
  scale_change change = scale_change::kept;
  if (bad) {
    if (settings.delayed_shift == 1 || state.cur_hysteresis == 1) {
      const std::uint64_t floor = bits_of(settings.min_scale);
      if (before == floor && settings.raise_error_at_min_scale) {
        return {false, cause, scale_change::at_minimum, true};
      }
      const std::uint64_t less = binary64::divide(before, factor);
      const std::uint64_t after = less > floor ? less : floor;
      state.scale = number_of(after);
      change = lowered(before, after);
    } else {
      --state.cur_hysteresis;
    }
    state.last_overflow_iter = state.cur_iter;
  } else {
    if (settings.consecutive_hysteresis) state.cur_hysteresis = settings.delayed_shift;
    const std::int64_t stable = state.cur_iter - state.last_overflow_iter - 1;
    if (stable > 0 && stable % settings.scale_window == 0) {
      if (!settings.consecutive_hysteresis) state.cur_hysteresis = settings.delayed_shift;
      const std::uint64_t after = binary64::multiply(before, factor);
      state.scale = number_of(after);
      change = raised_from(before, after);
    }
  }
  ++state.cur_iter;
  return {!bad, cause, change, false};
}

SAMEBITS_INLINE constexpr torch_state initial_state(const torch_scaling& settings) {
  return {number_of(binary64::narrow(bits_of(settings.init_scale))), 0};
}
SAMEBITS_INLINE constexpr apex_state initial_state(const apex_scaling& settings) {
  return {number_of(binary64::narrow(bits_of(settings.init_scale))), 0, settings.hysteresis};
}
SAMEBITS_INLINE constexpr apex_amp_state initial_state(const apex_amp_scaling& settings) {
  const std::uint64_t init = bits_of(settings.init_scale);
  const std::uint64_t ceiling = bits_of(settings.max_loss_scale);
  return {number_of(init < ceiling ? init : ceiling), 0};
}
SAMEBITS_INLINE constexpr megatron_state initial_state(const megatron_scaling& settings) {
  return {number_of(binary64::narrow(bits_of(settings.initial_scale))), 0, settings.hysteresis};
}
SAMEBITS_INLINE constexpr deepspeed_state initial_state(const deepspeed_scaling& settings) {
  return {settings.init_scale, 0, -1, settings.delayed_shift};
}

/// The current scale, as binary64 bits.
template <class State>
requires requires(const State& s) { s.scale; }
SAMEBITS_INLINE constexpr std::uint64_t scale_bits(const State& state) {
  if constexpr (sizeof(state.scale) == sizeof(std::uint32_t)) {
    return binary64::widen(bits_of(state.scale));
  } else {
    return bits_of(state.scale);
  }
}

/// RN(1 / scale) in binary32. Like all of these libraries, it divides in binary64 first and rounds
/// the quotient to binary32.
SAMEBITS_INLINE constexpr std::uint32_t inverse_scale(std::uint64_t scale) {
  return binary64::narrow(binary64::divide(binary64::one, scale));
}

}  // namespace samebits::numerics
