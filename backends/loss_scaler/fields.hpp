// Names of loss scaling: the only list of the names of all settings and state fields, for text and
// checkpoints.
#pragma once

#include <type_traits>

#include "samebits/core/config.hpp"
#include "samebits/core/loss_scaling.hpp"

namespace samebits::backends {

template <class T, class Plain>
concept is_a = std::is_same_v<std::remove_const_t<T>, Plain>;

// for_each_setting(settings, f) and for_each_field(state, f) call f(name, member) in a fixed order.
// Kernels may call for_each_field() with a device function object.

template <is_a<native_scaling> S, class F>
void for_each_setting(S& s, const F& f) {
  f("init_exponent", s.init_exponent);
  f("min_exponent", s.min_exponent);
  f("max_exponent", s.max_exponent);
  f("growth_interval", s.growth_interval);
  f("growth_interval_max", s.growth_interval_max);
  f("recovery_interval", s.recovery_interval);
  f("proof", s.proof);
  f("probe_window", s.probe_window);
  f("hysteresis", s.hysteresis);
  f("forgive_after", s.forgive_after);
  f("isolated_cost", s.isolated_cost);
  f("max_skipped_run", s.max_skipped_run);
  f("on_minimum", s.on_minimum);
  f("on_loss", s.on_loss);
  f("growth_headroom", s.growth_headroom);
  f("gradient_format", s.gradient_format);
  f("headroom_bits", s.headroom_bits);
  f("headroom_window", s.headroom_window);
}

template <is_a<torch_scaling> S, class F>
void for_each_setting(S& s, const F& f) {
  f("init_scale", s.init_scale);
  f("growth_factor", s.growth_factor);
  f("backoff_factor", s.backoff_factor);
  f("growth_interval", s.growth_interval);
}

template <is_a<apex_scaling> S, class F>
void for_each_setting(S& s, const F& f) {
  f("init_scale", s.init_scale);
  f("growth_factor", s.growth_factor);
  f("backoff_factor", s.backoff_factor);
  f("growth_interval", s.growth_interval);
  f("hysteresis", s.hysteresis);
}

template <is_a<apex_amp_scaling> S, class F>
void for_each_setting(S& s, const F& f) {
  f("init_scale", s.init_scale);
  f("scale_window", s.scale_window);
  f("min_loss_scale", s.min_loss_scale);
  f("max_loss_scale", s.max_loss_scale);
}

template <is_a<megatron_scaling> S, class F>
void for_each_setting(S& s, const F& f) {
  f("initial_scale", s.initial_scale);
  f("min_scale", s.min_scale);
  f("growth_factor", s.growth_factor);
  f("backoff_factor", s.backoff_factor);
  f("growth_interval", s.growth_interval);
  f("hysteresis", s.hysteresis);
}

template <is_a<deepspeed_scaling> S, class F>
void for_each_setting(S& s, const F& f) {
  f("init_scale", s.init_scale);
  f("scale_factor", s.scale_factor);
  f("scale_window", s.scale_window);
  f("min_scale", s.min_scale);
  f("delayed_shift", s.delayed_shift);
  f("consecutive_hysteresis", s.consecutive_hysteresis);
  f("raise_error_at_min_scale", s.raise_error_at_min_scale);
}

template <is_a<native_state> S, class F>
SAMEBITS_HD constexpr void for_each_field(S& s, const F& f) {
  f("exponent", s.exponent);
  f("reference", s.reference);
  f("probe_age", s.probe_age);
  f("proven", s.proven);
  f("refuted", s.refuted);
  f("good", s.good);
  f("calm", s.calm);
  f("strikes", s.strikes);
  f("interval", s.interval);
  f("skipped_run", s.skipped_run);
  f("peak", s.peak);
  f("peak_before", s.peak_before);
  f("peak_age", s.peak_age);
}

// State fields of other policies have the key names of the libraries' own state.

template <is_a<torch_state> S, class F>
SAMEBITS_HD constexpr void for_each_field(S& s, const F& f) {
  f("scale", s.scale);
  f("_growth_tracker", s.growth_tracker);
}

template <is_a<apex_state> S, class F>
SAMEBITS_HD constexpr void for_each_field(S& s, const F& f) {
  f("scale", s.scale);
  f("_growth_tracker", s.growth_tracker);
  f("_hysteresis_tracker", s.hysteresis_tracker);
}

template <is_a<apex_amp_state> S, class F>
SAMEBITS_HD constexpr void for_each_field(S& s, const F& f) {
  f("loss_scale", s.scale);
  f("unskipped", s.unskipped);
}

template <is_a<megatron_state> S, class F>
SAMEBITS_HD constexpr void for_each_field(S& s, const F& f) {
  f("scale", s.scale);
  f("growth_tracker", s.growth_tracker);
  f("hysteresis_tracker", s.hysteresis_tracker);
}

template <is_a<deepspeed_state> S, class F>
SAMEBITS_HD constexpr void for_each_field(S& s, const F& f) {
  f("cur_scale", s.scale);
  f("cur_iter", s.cur_iter);
  f("last_overflow_iter", s.last_overflow_iter);
  f("cur_hysteresis", s.cur_hysteresis);
}

}  // namespace samebits::backends
