// Loss scaling: the policies, their settings and states, what a step observed and what follows.
//
// A policy is a pure function, advance(settings, state, observation), declared here by its types
// and defined in numerics/; it runs at compile time, on the host and in kernels alike.
//
//   policy     the scale is             whose rule
//   native     2^e, e an integer        samebits (docs/loss_scaling.md)
//   torch      binary32                 PyTorch torch.amp.GradScaler, _amp_update_scale_
//   apex       binary32                 Apex and Transformer Engine, update_scale_hysteresis
//   apex_amp   binary64 (Python float)  Apex apex.amp LossScaler, as removed in 2025
//   megatron   binary32                 Megatron-Core DynamicGradScaler
//   deepspeed  binary64 (Python float)  DeepSpeed DynamicLossScaler (ZeRO)
#pragma once

#include <cstdint>
#include <string_view>

#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits {

enum class scaling_policy : std::uint8_t { native, torch, apex, apex_amp, megatron, deepspeed };
inline constexpr int scaling_policy_count = 6;

/// Why a step was not applied.
enum class step_cause : std::uint8_t {
  none,       ///< it was applied
  nonfinite,  ///< a scaled gradient was Inf or NaN; which is not known
  overflow,   ///< the largest was Inf
  nan,        ///< there was a NaN
  loss,       ///< the same, and the loss had not been finite before it was scaled
  unscaled,   ///< native: the scaled gradients are finite, unscaled they overflow
  /// The ranks' scalers had different settings or states, or clipped by different norms
  /// (device_loss_scaler::agree).
  ranks_differ,
};

/// What the update did to the scale.
enum class scale_change : std::uint8_t {
  kept,
  grown,
  backed_off,
  at_minimum,  ///< it would have backed off
};

/// Policy native: whether what cannot shrink the scale ends the run.
enum class at_minimum : std::uint8_t { keep_on, stop };

/// Policy native: what a non-finite loss says of the scale.
enum class loss_fault : std::uint8_t {
  hold,      ///< nothing: the forward pass was not scaled
  back_off,  ///< what every non-finite gradient says
};

/// Policy native: whether the largest gradient decides on growth, too.
enum class headroom : std::uint8_t { off, amax };

inline constexpr std::uint32_t amax_unknown = 0xFFFFFFFFu;

/// What was seen of the scaled gradients of one step, before they were unscaled.
struct step_observation {
  bool nonfinite = false;           ///< one of them is Inf or NaN
  bool loss_nonfinite = false;      ///< the loss was Inf or NaN before it was scaled
  bool unscaled_nonfinite = false;  ///< finite ones are not, once unscaled; native policy only
  std::uint32_t amax =
      amax_unknown;  ///< their amax (contract §6), binary32 bits; Inf and NaN count
};

/// The same of one rank's share of the gradients, or, from agree(), of all ranks'.
struct rank_observation {
  /// A rank without gradients saw an amax of 0.
  step_observation seen = {.amax = 0};
  /// Position of the first tensor with anything that is not finite; -1: none. Ranks that hold
  /// different tensors count in one numbering.
  std::int64_t first_bad = -1;
  /// Of all ranks: the first one whose loss was not finite, else the first that saw anything else
  /// that is not; -1: none. Not read of one rank.
  std::int64_t bad_rank = -1;
};

struct step_decision {
  bool apply = true;  ///< whether the optimizer may step
  step_cause cause = step_cause::none;
  scale_change change = scale_change::kept;
  bool stop = false;  ///< the policy wants the run to end
};

/// Settings of the native policy. Exponents are of two; steps are good ones where not said
/// otherwise.
struct native_scaling {
  static constexpr scaling_policy policy = scaling_policy::native;
  std::int32_t init_exponent = 16;
  std::int32_t min_exponent = -14;  ///< >= -126
  std::int32_t max_exponent = 24;   ///< <= 126
  /// Steps before the scale is tried one higher; doubles with every failed try, up to the second.
  std::uint32_t growth_interval = 2000;
  std::uint32_t growth_interval_max = 16000;
  std::uint32_t recovery_interval = 50;  ///< the same below a level that has proved itself
  std::uint32_t proof = 200;             ///< steps after which a level has proved itself
  std::uint32_t probe_window = 4;        ///< steps after a growth whose failure is the growth's
  std::uint32_t hysteresis = 2;          ///< bad steps that back off
  std::uint32_t forgive_after = 50;      ///< steps in a row that clear earlier bad ones
  std::uint32_t isolated_cost = 250;     ///< steps towards the next growth that a bad one costs
  std::uint32_t max_skipped_run = 0;     ///< skipped in a row that stop the run; 0: none
  samebits::at_minimum on_minimum = samebits::at_minimum::keep_on;
  loss_fault on_loss = loss_fault::hold;
  samebits::headroom growth_headroom = samebits::headroom::amax;
  format_id gradient_format = format_id::fp16;  ///< in which the scaled gradients overflow
  std::int32_t headroom_bits = 1;               ///< left free above the largest recent gradient
  std::uint32_t headroom_window = 200;          ///< recent: this many steps, up to twice as many
};

struct native_state {
  std::int32_t exponent = 16;
  std::int32_t reference = 16;    ///< the highest level that is believed in
  std::int32_t probe_age = -1;    ///< steps since a growth that is still on trial, else -1
  std::uint32_t proven = 0;       ///< 1: the present level has proved itself
  std::uint32_t refuted = 0;      ///< 1: the last growth that was on trial failed
  std::uint32_t good = 0;         ///< steps at this level, less what isolated bad ones cost
  std::uint32_t calm = 0;         ///< steps since the last bad one
  std::uint32_t strikes = 0;      ///< bad steps that are not forgiven
  std::uint32_t interval = 2000;  ///< the present one
  std::uint32_t skipped_run = 0;  ///< steps skipped in a row, whatever the cause
  /// floor(log2) of the largest unscaled gradient in the running and the last whole window.
  std::int32_t peak = no_peak;
  std::int32_t peak_before = no_peak;
  std::uint32_t peak_age = 0;

  static constexpr std::int32_t no_peak = -0x7FFFFFFF;
  friend constexpr bool operator==(const native_state&, const native_state&) = default;
};

/// torch.amp.GradScaler's arguments.
struct torch_scaling {
  static constexpr scaling_policy policy = scaling_policy::torch;
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
};

struct torch_state {
  float scale = 65536;
  std::int64_t growth_tracker = 0;
  friend constexpr bool operator==(const torch_state&, const torch_state&) = default;
};

/// The kernel's arguments; the defaults are those of PyTorch and, for the hysteresis, of NeMo's
/// GradScaler, the rule's other home.
struct apex_scaling {
  static constexpr scaling_policy policy = scaling_policy::apex;
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  std::int64_t hysteresis = 1;
};

struct apex_state {
  float scale = 65536;
  std::int64_t growth_tracker = 0;
  std::int64_t hysteresis_tracker = 1;
  friend constexpr bool operator==(const apex_state&, const apex_state&) = default;
};

/// apex.amp LossScaler's arguments. Its scale_factor is not among them: the class ignores it and
/// works with 2.
struct apex_amp_scaling {
  static constexpr scaling_policy policy = scaling_policy::apex_amp;
  double init_scale = 65536;
  std::int64_t scale_window = 2000;
  double min_loss_scale = 0;  ///< 0: none, as None there
  double max_loss_scale = 16777216;
};

struct apex_amp_state {
  double scale = 65536;
  std::int64_t unskipped = 0;
  friend constexpr bool operator==(const apex_amp_state&, const apex_amp_state&) = default;
};

/// DynamicGradScaler's arguments; the defaults are those of Megatron's command line.
struct megatron_scaling {
  static constexpr scaling_policy policy = scaling_policy::megatron;
  double initial_scale = 4294967296.0;
  double min_scale = 1;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 1000;
  std::int64_t hysteresis = 2;
};

struct megatron_state {
  float scale = 4294967296.0f;
  std::int64_t growth_tracker = 0;
  std::int64_t hysteresis_tracker = 2;
  friend constexpr bool operator==(const megatron_state&, const megatron_state&) = default;
};

/// DynamicLossScaler's arguments; the defaults are those of the fp16 section of a configuration.
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

struct deepspeed_state {
  double scale = 65536;
  std::int64_t cur_iter = 0;
  std::int64_t last_overflow_iter = -1;
  std::int64_t cur_hysteresis = 2;
  friend constexpr bool operator==(const deepspeed_state&, const deepspeed_state&) = default;
};

constexpr std::string_view name(scaling_policy p) {
  switch (p) {
    case scaling_policy::native: return "native";
    case scaling_policy::torch: return "torch";
    case scaling_policy::apex: return "apex";
    case scaling_policy::apex_amp: return "apex_amp";
    case scaling_policy::megatron: return "megatron";
    case scaling_policy::deepspeed: return "deepspeed";
  }
  return "?";
}

constexpr std::string_view name(step_cause c) {
  switch (c) {
    case step_cause::none: return "none";
    case step_cause::nonfinite: return "nonfinite";
    case step_cause::overflow: return "overflow";
    case step_cause::nan: return "nan";
    case step_cause::loss: return "loss";
    case step_cause::unscaled: return "unscaled";
    case step_cause::ranks_differ: return "ranks_differ";
  }
  return "?";
}

constexpr std::string_view name(scale_change c) {
  switch (c) {
    case scale_change::kept: return "kept";
    case scale_change::grown: return "grown";
    case scale_change::backed_off: return "backed_off";
    case scale_change::at_minimum: return "at_minimum";
  }
  return "?";
}

namespace detail {
// What numerics/ needs of the numbers in settings and states: their bits.
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
