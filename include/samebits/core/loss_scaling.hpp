// Loss scaling: policies, their settings and states, observations of a step, and decisions.
//
// A policy is a pure function, advance(settings, state, observation). This header declares the
// policy's types; numerics/ defines the function. It runs at compile time, on the host and in
// kernels.
//
//   policy     type of the scale        source of the rule
//   native     2^e, e an integer        samebits (docs/loss_scaling.md)
//   torch      binary32                 PyTorch torch.amp.GradScaler, _amp_update_scale_
//   apex       binary32                 Apex and Transformer Engine, update_scale_hysteresis
//   apex_amp   binary64 (Python float)  Apex apex.amp LossScaler, as removed in 2025
//   megatron   binary32                 Megatron-Core DynamicGradScaler
//   deepspeed  binary64 (Python float)  DeepSpeed DynamicLossScaler (ZeRO)
#pragma once

#include <cstdint>

#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/table.hpp"

namespace samebits {

/// Loss scaling policy; see the table above.
enum class scaling_policy : std::uint8_t { native, torch, apex, apex_amp, megatron, deepspeed };
template <>
inline constexpr auto table_of<scaling_policy> = enum_table<scaling_policy::deepspeed>(
    {"native", "torch", "apex", "apex_amp", "megatron", "deepspeed"});

/// Cause of a skipped step.
enum class step_cause : std::uint8_t {
  none,       ///< the step was applied
  nonfinite,  ///< a scaled gradient was Inf or NaN; unknown which of the two
  overflow,   ///< the max magnitude of the scaled gradients was Inf
  nan,        ///< a scaled gradient was NaN
  loss,       ///< a scaled gradient was Inf or NaN, and so was the unscaled loss
  unscaled,   ///< native: finite scaled gradients that overflow when unscaled
  /// The ranks' scalers had different settings or states, or clipped by different norms
  /// (device_loss_scaler::agree).
  ranks_differ,
};
template <>
inline constexpr auto table_of<step_cause> = enum_table<step_cause::ranks_differ>(
    {"none", "nonfinite", "overflow", "nan", "loss", "unscaled", "ranks_differ"});

/// Effect of the update on the scale.
enum class scale_change : std::uint8_t {
  kept,
  grown,
  backed_off,
  at_minimum,  ///< at the lower bound: would have backed off
};
template <>
inline constexpr auto table_of<scale_change> =
    enum_table<scale_change::at_minimum>({"kept", "grown", "backed_off", "at_minimum"});

/// Native policy: whether a bad step at the lower bound of the scale ends the run.
enum class at_minimum : std::uint8_t { keep_on, stop };
template <>
inline constexpr auto table_of<at_minimum> = enum_table<at_minimum::stop>({"keep_on", "stop"});

/// Native policy: effect of a non-finite loss on the scale.
enum class loss_fault : std::uint8_t {
  hold,      ///< no effect: the forward pass was not scaled
  back_off,  ///< the effect of non-finite gradients
};
template <>
inline constexpr auto table_of<loss_fault> = enum_table<loss_fault::back_off>({"hold", "back_off"});

/// Native policy: whether the max magnitude of the gradients also decides on growth.
enum class headroom : std::uint8_t { off, amax };
template <>
inline constexpr auto table_of<headroom> = enum_table<headroom::amax>({"off", "amax"});

/// Value of an amax that was not measured.
inline constexpr std::uint32_t amax_unknown = 0xFFFFFFFFu;

/// Observation of the scaled gradients of one step, before unscaling.
struct step_observation {
  bool nonfinite = false;             ///< a scaled gradient is Inf or NaN
  bool loss_nonfinite = false;        ///< the loss was Inf or NaN before scaling
  bool unscaled_nonfinite = false;    ///< unscaling made a finite gradient Inf; read by native only
  std::uint32_t amax = amax_unknown;  ///< amax (contract §6) as binary32 bits, Inf and NaN included
};

/// Observation of one rank's gradients or, from agree(), of the gradients of all ranks.
struct rank_observation {
  /// The observation. A rank without gradients has an amax of 0.
  step_observation seen = {.amax = 0};
  /// Position of the first tensor with Inf or NaN; -1: none. Ranks that hold different tensors use
  /// one common numbering.
  std::int64_t first_bad = -1;
  /// Result of agree(): the first rank whose loss was not finite, else the first rank with any
  /// other Inf or NaN; -1: none. Ignored in the observation of one rank.
  std::int64_t bad_rank = -1;
};

/// Decision of a policy on one step.
struct step_decision {
  bool apply = true;  ///< whether the optimizer may step
  step_cause cause = step_cause::none;
  scale_change change = scale_change::kept;
  bool stop = false;  ///< the policy ends the run
};

/// Settings of the native policy. Exponents are powers of two. "Steps" are good steps unless stated
/// otherwise; a level is a value of the exponent.
struct native_scaling {
  static constexpr scaling_policy policy = scaling_policy::native;
  std::int32_t init_exponent = 16;
  std::int32_t min_exponent = -14;  ///< >= -126
  std::int32_t max_exponent = 24;   ///< <= 126
  /// Steps before the scale grows by one. Doubles with every failed growth, up to
  /// growth_interval_max.
  std::uint32_t growth_interval = 2000;
  std::uint32_t growth_interval_max = 16000;
  std::uint32_t recovery_interval = 50;  ///< growth interval below the reference level
  std::uint32_t proof = 200;             ///< steps after which a level is proven
  std::uint32_t probe_window = 4;    ///< steps after a growth in which a bad step undoes the growth
  std::uint32_t hysteresis = 2;      ///< number of bad steps that back off
  std::uint32_t forgive_after = 50;  ///< steps in a row that clear earlier bad steps
  std::uint32_t isolated_cost = 250;  ///< steps towards the next growth that a bad step costs
  std::uint32_t max_skipped_run = 0;  ///< skipped steps in a row that end the run; 0: no limit
  samebits::at_minimum on_minimum = samebits::at_minimum::keep_on;
  loss_fault on_loss = loss_fault::hold;
  samebits::headroom growth_headroom = samebits::headroom::amax;
  format_id gradient_format = format_id::fp16;  ///< format in which scaled gradients overflow
  std::int32_t headroom_bits = 1;               ///< binades left free above the max recent gradient
  std::uint32_t headroom_window = 200;          ///< "recent": this many steps, up to twice as many
};

/// State of the native policy.
struct native_state {
  std::int32_t exponent = 16;
  std::int32_t reference = 16;    ///< level below which recovery_interval applies
  std::int32_t probe_age = -1;    ///< steps since a growth within probe_window, else -1
  std::uint32_t proven = 0;       ///< 1: the present level is proven
  std::uint32_t refuted = 0;      ///< 1: the last growth failed within probe_window
  std::uint32_t good = 0;         ///< steps at this level, minus the cost of isolated bad steps
  std::uint32_t calm = 0;         ///< steps since the last bad step
  std::uint32_t strikes = 0;      ///< bad steps that are not cleared
  std::uint32_t interval = 2000;  ///< present growth interval
  std::uint32_t skipped_run = 0;  ///< steps skipped in a row, for any cause
  /// floor(log2) of the max unscaled gradient: in the running window (peak), and in the last whole
  /// window (peak_before). peak_age: steps in the running window.
  std::int32_t peak = no_peak;
  std::int32_t peak_before = no_peak;
  std::uint32_t peak_age = 0;

  static constexpr std::int32_t no_peak = -0x7FFFFFFF;
  friend constexpr bool operator==(const native_state&, const native_state&) = default;
};

/// Arguments of torch.amp.GradScaler.
struct torch_scaling {
  static constexpr scaling_policy policy = scaling_policy::torch;
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
};

/// State of torch.amp.GradScaler.
struct torch_state {
  float scale = 65536;
  std::int64_t growth_tracker = 0;
  friend constexpr bool operator==(const torch_state&, const torch_state&) = default;
};

/// Arguments of the kernel update_scale_hysteresis. Defaults are those of PyTorch; the default
/// hysteresis is that of NeMo's GradScaler, which has the same rule.
struct apex_scaling {
  static constexpr scaling_policy policy = scaling_policy::apex;
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  std::int64_t hysteresis = 1;
};

/// State of the kernel update_scale_hysteresis.
struct apex_state {
  float scale = 65536;
  std::int64_t growth_tracker = 0;
  std::int64_t hysteresis_tracker = 1;
  friend constexpr bool operator==(const apex_state&, const apex_state&) = default;
};

/// Arguments of apex.amp LossScaler, without scale_factor: the class ignores scale_factor and uses
/// 2.
struct apex_amp_scaling {
  static constexpr scaling_policy policy = scaling_policy::apex_amp;
  double init_scale = 65536;
  std::int64_t scale_window = 2000;
  double min_loss_scale = 0;  ///< 0: none, as None in Apex
  double max_loss_scale = 16777216;
};

/// State of apex.amp LossScaler.
struct apex_amp_state {
  double scale = 65536;
  std::int64_t unskipped = 0;
  friend constexpr bool operator==(const apex_amp_state&, const apex_amp_state&) = default;
};

/// Arguments of DynamicGradScaler. Defaults are those of Megatron's command line.
struct megatron_scaling {
  static constexpr scaling_policy policy = scaling_policy::megatron;
  double initial_scale = 4294967296.0;
  double min_scale = 1;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 1000;
  std::int64_t hysteresis = 2;
};

/// State of DynamicGradScaler.
struct megatron_state {
  float scale = 4294967296.0f;
  std::int64_t growth_tracker = 0;
  std::int64_t hysteresis_tracker = 2;
  friend constexpr bool operator==(const megatron_state&, const megatron_state&) = default;
};

/// Arguments of DynamicLossScaler. Defaults are those of the fp16 section of a configuration.
struct deepspeed_scaling {
  static constexpr scaling_policy policy = scaling_policy::deepspeed;
  double init_scale = 65536;
  double scale_factor = 2;
  std::int64_t scale_window = 1000;
  double min_scale = 1;
  std::int64_t delayed_shift = 2;
  bool consecutive_hysteresis = false;
  bool raise_error_at_min_scale = true;
};

/// State of DynamicLossScaler.
struct deepspeed_state {
  double scale = 65536;
  std::int64_t cur_iter = 0;
  std::int64_t last_overflow_iter = -1;
  std::int64_t cur_hysteresis = 2;
  friend constexpr bool operator==(const deepspeed_state&, const deepspeed_state&) = default;
};

namespace detail {
// Numbers of settings and states as bits, for numerics/.
SAMEBITS_HD constexpr std::uint32_t bits_of(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
SAMEBITS_HD constexpr std::uint64_t bits_of(double x) {
  return __builtin_bit_cast(std::uint64_t, x);
}
SAMEBITS_HD constexpr float number_of(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
SAMEBITS_HD constexpr double number_of(std::uint64_t bits) {
  return __builtin_bit_cast(double, bits);
}
}  // namespace detail

}  // namespace samebits
