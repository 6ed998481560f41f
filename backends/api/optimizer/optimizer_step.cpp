// optimizer_step(): checks settings against the list, and chooses a backend.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "backends/api/run_call.hpp"
#include "backends/dispatch/access.hpp"
#include "backends/dispatch/calls/optimizer.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/binary64.hpp"
#include "samebits/optimizer.hpp"

namespace samebits {
namespace {

using backends::group_summary;
using backends::optimizer_data;

/// Binary64 bits of a number; -0 becomes +0. Bits are compared, because under DAZ a subnormal number
/// compares equal to zero.
std::uint64_t magnitude(double x) {
  return std::bit_cast<std::uint64_t>(x) & ~numerics::binary<std::uint64_t>::sign_bit;
}
bool is_negative(double x) { return std::signbit(x) && magnitude(x) != 0; }
/// Whether x is a number in [0, limit).
bool is_below(double x, double limit) { return !is_negative(x) && magnitude(x) < magnitude(limit); }
bool is_finite(double x) { return is_below(x, std::numeric_limits<double>::infinity()); }

/// Whether x is 0 or at least 2^-126. A state belongs to every other number, and no processor takes
/// such a number for 0.
bool is_zero_or_normal(double x) {
  return magnitude(x) == 0 || magnitude(x) >= magnitude(0x1p-126);
}

/// Whether eps is a finite number >= 0 after rounding to binary32. With 0 an element whose
/// gradients were all 0 becomes 0 / 0, a NaN, as in PyTorch.
bool is_eps(double x) {
  return is_finite(x) && numerics::binary64::narrow(magnitude(x)) < numerics::binary32::inf;
}

void check_ranges(const optimizer_settings& s) {
  require(is_finite(s.learning_rate), "learning_rate: must be a finite number >= 0");
  require(is_finite(s.weight_decay), "weight_decay: must be a finite number >= 0");
  if (s.rule == update_rule::sgd) {
    require(is_below(s.momentum, 1) && is_zero_or_normal(s.momentum),
            "momentum: must be 0 or in [2^-126, 1)");
    require(is_below(s.dampening, 1) || magnitude(s.dampening) == magnitude(1.0),
            "dampening: must be in [0, 1]");
    require(!s.nesterov || (magnitude(s.momentum) != 0 && magnitude(s.dampening) == 0),
            "nesterov: needs momentum > 0 and dampening = 0");
    return;
  }
  require(is_below(s.beta1, 1), "beta1: must be in [0, 1)");
  require(is_below(s.beta2, 1), "beta2: must be in [0, 1)");
  const auto is_one_in_binary32 = [](double x) {
    return numerics::binary64::narrow(magnitude(x)) == numerics::binary32::one;
  };
  require(!is_one_in_binary32(s.beta1), "beta1: must be below 1 after rounding to binary32");
  require(!is_one_in_binary32(s.beta2), "beta2: must be below 1 after rounding to binary32");
  require(state_count(s) < 2 || is_eps(s.eps),
          "eps: must be a number >= 0 that is finite after rounding to binary32");
}

bool is_of_torch(const optimizer_settings& s) {
  return s.profile == update_profile::torch_foreach || s.profile == update_profile::torch_fused;
}

/// Requires that the tensors of a group suit its settings.
void check_group(const optimizer_data& list, const group_summary& group,
                 const optimizer_settings& s) {
  const auto check_tensor = [&](bool ok, auto number, const auto&... message) {
    if (ok) return;
    const auto position = static_cast<std::size_t>(number);
    refuse(list_item{"tensors", position, list.tensors[position].name}, ": ", message...);
  };
  const int states = state_count(s);
  check_tensor(group.states >= states, group.fewest, "the rule needs ", states, " states, got ",
               group.states);
  check_tensor(
      !is_of_torch(s) || group.mixed < 0, group.mixed,
      "with a torch profile weights without master or low part must be fp32 or bf16_nearest, and "
      "gradient and states must have their format");
  check_tensor(s.rule != update_rule::lamb || group.shard < 0, group.shard,
               "first_index: must be 0 with rule lamb, which needs whole parameters");
}

/// Checks learning rates in host memory. Bits are compared, as magnitude() says.
void check_learning_rates(std::span<const float> rates) {
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const std::uint64_t rate = numerics::binary64::widen(std::bit_cast<std::uint32_t>(rates[i]));
    refuse_if(!is_finite(std::bit_cast<double>(rate)), "input.learning_rates[", i,
              "]: must be a finite number >= 0");
  }
}

/// Checks a step's input. What lies in device memory is not read.
void check_input(const step_input& input, std::size_t groups, memory_space space) {
  const bool on_host = space == memory_space::host;
  if (on_host && input.learning_rates != nullptr) {
    check_learning_rates({input.learning_rates, groups});
  }
  if (input.decision == nullptr) {
    require(input.applied_steps != 0,
            "input.applied_steps: must count this step, so it is at least 1");
    require(!std::isnan(input.grad_mul), "input.grad_mul: must not be NaN");
  } else if (on_host && input.decision->applied) {
    require(input.decision->applied_steps != 0,
            "input.decision.applied_steps: must count this step, so it is at least 1 if the step "
            "is applied");
  }
}

void check_step(const optimizer_data& list, std::span<const optimizer_settings> groups,
                const step_input& input) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    try {
      check(groups[i]);
    } catch (const invalid_argument& error) {
      refuse("groups[", i, "].", error.what());
    }
  }
  for (const group_summary& group : list.groups) {
    refuse_if(group.group >= groups.size(), "groups: must have settings for group ", group.group,
              ", got ", groups.size(), " groups");
    check_group(list, group, groups[group.group]);
  }
  check_input(input, groups.size(), list.space);
}

}  // namespace

void check(const optimizer_settings& s) {
  require(static_cast<int>(s.rule) < enum_count<update_rule>, "rule: is no update_rule");
  require(static_cast<int>(s.profile) < enum_count<update_profile>,
          "profile: is no update_profile");
  require(has_profile(s.rule, s.profile),
          "profile: the rule has no such profile (see has_profile())");
  check_ranges(s);
  require(s.profile != update_profile::torch_foreach || s.rule == update_rule::sgd ||
              magnitude(s.beta1) > magnitude(0.5),
          "beta1: must be above 0.5 with profile torch_foreach, because PyTorch takes other steps "
          "below");
}

void optimizer_step(const optimizer_list& list, std::span<const optimizer_settings> groups,
                    const step_input& input, const executor& where) {
  namespace b = backends;
  const optimizer_data& data = b::data_of(list);
  check_step(data, groups, input);
  b::check_threads(where);
  const b::optimizer_call call{data, groups, input};
  const b::device_scope on(data.space, data.device, where.stream);
  const b::backend& chosen =
      b::backend_for(&b::backend::step, call, data.space, where, "has no optimizer steps");
  if (data.elements != 0) chosen.step.run(call, where);
}

}  // namespace samebits
