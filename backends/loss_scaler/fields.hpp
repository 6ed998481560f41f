// Settings and states of loss scaling, member by member, for text and checkpoints.
#pragma once

#include <type_traits>

#include "samebits/core/config.hpp"
#include "samebits/core/loss_scaling.hpp"
#include "samebits/core/option.hpp"

namespace samebits::backends {

template <class T, class Plain>
concept is_a = std::is_same_v<std::remove_const_t<T>, Plain>;

/// Calls f(name, member) for each setting, in the order of its table. samebits/options.hpp must be
/// included.
template <has_options S, class F>
void for_each_setting(S& s, const F& f) {
  for_each_option(s, [&](const auto& row, auto& value) { f(row.name, value); });
}

// for_each_field(state, f) calls f(name, member) in a fixed order: the only list of the names of all
// fields. Kernels may call it with a device function object.

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
