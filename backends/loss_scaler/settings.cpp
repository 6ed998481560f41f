// Settings and states of loss scaling: defaults, checks, options by name.
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>

#include "backends/api/view_checks.hpp"
#include "backends/dispatch/refuse.hpp"
#include "backends/loss_scaler/checks.hpp"
#include "backends/loss_scaler/fields.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/binary64.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/options.hpp"

namespace samebits {
namespace {

// Upper bounds of settings and counters. Within them a counter overflows only after as many further
// steps.
constexpr std::int64_t max_steps = std::int64_t{1} << 53;
constexpr std::int64_t max_int = std::numeric_limits<std::int32_t>::max();

/// Throws unless a setting or state of the policy is as expected.
struct requirement {
  scaling_policy policy;
  void operator()(bool ok, std::string_view field, const char* expected) const {
    samebits::require(ok, "loss scaling, policy ", policy, ": ", field, " must be ", expected);
  }
};

bool is_within(std::int64_t x, std::int64_t maximum) { return x >= -maximum && x <= maximum; }
// Compares bits: under DAZ a subnormal number compares equal to zero.
bool is_number(double x) { return detail::bits_of(x) < numerics::binary64::inf; }
bool is_above_zero(double x) { return is_number(x) && detail::bits_of(x) != 0; }
/// Requires numbers >= 0.
bool is_at_most(double x, double limit) { return detail::bits_of(x) <= detail::bits_of(limit); }
/// Whether x, rounded to binary32, is finite and above zero.
bool is_binary32_above_zero(double x) {
  if (!is_number(x)) return false;
  const std::uint32_t narrow = numerics::binary64::narrow(detail::bits_of(x));
  return narrow != 0 && narrow < numerics::binary32::inf;
}

void check(const native_scaling& s) {
  const requirement need{s.policy};
  need(s.min_exponent >= -126 && s.min_exponent <= s.max_exponent, "min_exponent",
       "in -126 .. max_exponent");
  need(s.max_exponent <= 126, "max_exponent", "at most 126");
  need(s.init_exponent >= s.min_exponent && s.init_exponent <= s.max_exponent, "init_exponent",
       "in min_exponent .. max_exponent");
  need(s.growth_interval >= 1, "growth_interval", "at least 1");
  need(s.growth_interval_max >= s.growth_interval && s.growth_interval_max <= max_int,
       "growth_interval_max", "in growth_interval .. 2^31 - 1");
  need(s.recovery_interval >= 1, "recovery_interval", "at least 1");
  need(s.proof >= 1, "proof", "at least 1");
  need(s.probe_window >= 1 && s.probe_window <= max_int, "probe_window", "in 1 .. 2^31 - 1");
  need(s.hysteresis >= 1, "hysteresis", "at least 1");
  need(s.headroom_bits >= 0 && s.headroom_bits <= 126, "headroom_bits", "in 0 .. 126");
  need(s.headroom_window >= 1, "headroom_window", "at least 1");
  need(backends::is_among(s.gradient_format, backends::arithmetic_formats), "gradient_format",
       "fp32, fp16, bf16, e4m3 or e5m2");
}

void check(const torch_scaling& s) {
  const requirement need{s.policy};
  need(is_binary32_above_zero(s.init_scale), "init_scale", "above zero and finite in fp32");
  need(is_number(s.growth_factor) && s.growth_factor > 1, "growth_factor", "finite and above 1");
  need(is_number(s.backoff_factor) && s.backoff_factor < 1, "backoff_factor", "in [0, 1)");
  need(is_within(s.growth_interval, max_int), "growth_interval", "an integer of 32 bits");
}

void check(const apex_scaling& s) {
  const requirement need{s.policy};
  need(is_binary32_above_zero(s.init_scale), "init_scale", "above zero and finite in fp32");
  need(is_number(s.growth_factor), "growth_factor", "finite and >= 0");
  need(is_number(s.backoff_factor), "backoff_factor", "finite and >= 0");
  need(is_within(s.growth_interval, max_int), "growth_interval", "an integer of 32 bits");
  need(is_within(s.hysteresis, max_int), "hysteresis", "an integer of 32 bits");
}

void check(const apex_amp_scaling& s) {
  const requirement need{s.policy};
  need(is_above_zero(s.init_scale), "init_scale", "finite and above zero");
  need(is_within(s.scale_window, max_steps), "scale_window", "at most 2^53");
  need(is_number(s.min_loss_scale), "min_loss_scale", "finite and >= 0");
  need(is_above_zero(s.max_loss_scale), "max_loss_scale", "finite and above zero");
}

void check(const megatron_scaling& s) {
  const requirement need{s.policy};
  need(is_binary32_above_zero(s.initial_scale), "initial_scale", "above zero and finite in fp32");
  need(is_binary32_above_zero(s.min_scale) && is_at_most(s.min_scale, s.initial_scale), "min_scale",
       "above zero in fp32 and at most initial_scale");
  need(is_binary32_above_zero(s.growth_factor) && s.growth_factor > 1, "growth_factor",
       "finite in fp32 and above 1");
  need(is_binary32_above_zero(s.backoff_factor) && s.backoff_factor < 1, "backoff_factor",
       "above zero in fp32 and below 1");
  need(s.growth_interval >= 1 && s.growth_interval <= max_steps, "growth_interval", "in 1 .. 2^53");
  need(s.hysteresis >= 1 && s.hysteresis <= max_steps, "hysteresis", "in 1 .. 2^53");
}

void check(const deepspeed_scaling& s) {
  const requirement need{s.policy};
  need(is_above_zero(s.init_scale), "init_scale", "finite and above zero");
  need(is_above_zero(s.scale_factor), "scale_factor", "finite and above zero");
  need(s.scale_window >= 1 && s.scale_window <= max_steps, "scale_window", "in 1 .. 2^53");
  need(is_number(s.min_scale), "min_scale", "finite and >= 0");
  need(is_within(s.delayed_shift, max_steps), "delayed_shift", "at most 2^53");
}

/// A scale may have become Inf or zero. Trackers are counts.
template <class Settings, class State>
void check(const Settings& settings, const State& state) {
  const requirement need{settings.policy};
  backends::for_each_field(state, [&](std::string_view field, const auto& value) {
    using type = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_floating_point_v<type>) {
      constexpr bool wide = sizeof(type) == sizeof(double);
      constexpr std::uint64_t inf = wide ? numerics::binary64::inf : numerics::binary32::inf;
      need(detail::bits_of(value) <= inf, field, "a number >= 0");
    } else {
      need(value >= -max_steps && value <= max_steps, field, "within 2^53 of zero");
    }
  });
}

void check(const native_scaling& settings, const native_state& state) {
  const requirement need{settings.policy};
  const auto level = [&](std::int32_t e) {
    return e >= settings.min_exponent && e <= settings.max_exponent;
  };
  const auto binade = [](std::int32_t e) {
    return e == native_state::no_peak || (e >= -300 && e <= 300);
  };
  need(level(state.exponent), "exponent", "in min_exponent .. max_exponent");
  need(level(state.reference), "reference", "in min_exponent .. max_exponent");
  need(state.probe_age >= -1 && (state.probe_age < 0 || state.exponent > settings.min_exponent) &&
           state.probe_age < static_cast<std::int64_t>(settings.probe_window),
       "probe_age", "-1, or below probe_window above the lowest level");
  need(state.proven <= 1, "proven", "0 or 1");
  need(state.refuted <= 1, "refuted", "0 or 1");
  need(state.interval >= 1 && state.interval <= settings.growth_interval_max, "interval",
       "in 1 .. growth_interval_max");
  need(binade(state.peak), "peak", "the exponent of a gradient");
  need(binade(state.peak_before), "peak_before", "the exponent of a gradient");
  need(state.peak_age <= settings.headroom_window, "peak_age", "at most headroom_window");
}

}  // namespace

scaling_settings default_settings(scaling_policy policy) {
  switch (policy) {
    case scaling_policy::native: return native_scaling{};
    case scaling_policy::torch: return torch_scaling{};
    case scaling_policy::apex: return apex_scaling{};
    case scaling_policy::apex_amp: return apex_amp_scaling{};
    case scaling_policy::megatron: return megatron_scaling{};
    case scaling_policy::deepspeed: return deepspeed_scaling{};
  }
  refuse("policy: must be a value of samebits::scaling_policy, got ", static_cast<int>(policy));
}

scaling_policy policy_of(const scaling_settings& settings) {
  return std::visit([](const auto& s) { return s.policy; }, settings);
}

void check_settings(const scaling_settings& settings) {
  std::visit([](const auto& s) { check(s); }, settings);
}

void set_option(scaling_settings& settings, std::string_view name, std::string_view text) {
  const std::string what =
      "a setting of policy " + std::string(samebits::name(policy_of(settings)));
  std::visit([&](auto& s) { detail::set_option(s, name, text, what); }, settings);
}

namespace backends {

void check_state(const scaling_settings& settings, const scaling_state& state) {
  std::visit(
      [&](const auto& s) {
        using state_type = decltype(numerics::initial_state(s));
        const auto* own = std::get_if<state_type>(&state);
        refuse_if(own == nullptr, "loss scaling: the state is of another policy than ", s.policy);
        check(s, *own);
      },
      settings);
}

}  // namespace backends
}  // namespace samebits
