// Update: one element's optimizer step by rule and profile (contract §12).
#pragma once

#include "numerics/update/adam.hpp"
#include "numerics/update/adam_libraries.hpp"
#include "numerics/update/adam_torch.hpp"
#include "numerics/update/constants.hpp"
#include "numerics/update/lamb.hpp"
#include "numerics/update/lion.hpp"
#include "numerics/update/sgd.hpp"
#include "numerics/update/update_arithmetic.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/optimizer.hpp"

namespace samebits::numerics {

/// A step's formula as a type: rule, profile, and for sgd whether there is momentum.
template <update_rule Rule, update_profile Profile, bool HasMomentum = false>
struct update_formula {
  static constexpr update_rule rule = Rule;
  static constexpr update_profile profile = Profile;
  static constexpr int states = Rule == update_rule::sgd    ? (HasMomentum ? 1 : 0)
                                : Rule == update_rule::lion ? 1
                                                            : 2;

  /// Computes the new weight and states of one element. lamb: only the states.
  ///
  /// @param x  the gradient is the tensor's value; it is multiplied by grad_mul here
  /// @param rounded  rounds to the weights' format; not_rounded unless torch_foreach updates 16-bit
  ///   weights without master or low part
  template <class Arithmetic, class Word, class Rounded = not_rounded>
  SAMEBITS_INLINE static constexpr void apply(const update_constants& c, update_element<Word>& x,
                                              const Rounded& rounded = {}) {
    x.gradient = Arithmetic::product(x.gradient, Word(c.grad_mul));
    if constexpr (Rule == update_rule::sgd) {
      sgd_step<Profile, HasMomentum, Arithmetic>(c, x, rounded);
    } else if constexpr (Rule == update_rule::lion) {
      lion_step<Profile, Arithmetic>(c, x);
    } else if constexpr (Rule == update_rule::lamb) {
      update_averages<Profile, Arithmetic>(c, x);
    } else if constexpr (Profile == update_profile::torch_foreach) {
      adam_foreach_step<Rule, Arithmetic>(c, x, rounded);
    } else if constexpr (Profile == update_profile::torch_fused) {
      adam_fused_step<Rule, Arithmetic>(c, x);
    } else if constexpr (Profile == update_profile::apex_te) {
      adam_apex_step<Rule, Arithmetic>(c, x);
    } else if constexpr (Profile == update_profile::lightseq) {
      adam_lightseq_step<Rule, Arithmetic>(c, x);
    } else {
      adam_step<Rule, Profile, Arithmetic>(c, x);
    }
    x.weight = Arithmetic::canonical(x.weight);
    if constexpr (states > 0) x.first = Arithmetic::canonical(x.first);
    if constexpr (states > 1) x.second = Arithmetic::canonical(x.second);
  }
};

/// Calls f with the update_formula of checked settings. Host only: a launch chooses its kernel.
template <class Function>
constexpr void visit_formula(const optimizer_settings& s, const Function& f) {
  using enum update_profile;
  const auto adam = [&](auto rule) {
    constexpr update_rule r = decltype(rule)::rule;
    switch (s.profile) {
      case strict: return f(update_formula<r, strict>{});
      case fma: return f(update_formula<r, fma>{});
      case torch_foreach: return f(update_formula<r, torch_foreach>{});
      case torch_fused: return f(update_formula<r, torch_fused>{});
      case apex_te: return f(update_formula<r, apex_te>{});
      case lightseq: return f(update_formula<r, lightseq>{});
    }
  };
  const auto sgd = [&](auto momentum) {
    constexpr bool m = decltype(momentum)::states == 1;
    switch (s.profile) {
      case strict: return f(update_formula<update_rule::sgd, strict, m>{});
      case torch_foreach: return f(update_formula<update_rule::sgd, torch_foreach, m>{});
      default: return f(update_formula<update_rule::sgd, fma, m>{});
    }
  };
  switch (s.rule) {
    case update_rule::adamw: return adam(update_formula<update_rule::adamw, strict>{});
    case update_rule::adam: return adam(update_formula<update_rule::adam, strict>{});
    case update_rule::sgd:
      return s.momentum == 0 ? sgd(update_formula<update_rule::sgd, strict, false>{})
                             : sgd(update_formula<update_rule::sgd, strict, true>{});
    case update_rule::lion:
      return s.profile == strict ? f(update_formula<update_rule::lion, strict>{})
                                 : f(update_formula<update_rule::lion, fma>{});
    case update_rule::lamb:
      return s.profile == strict ? f(update_formula<update_rule::lamb, strict>{})
                                 : f(update_formula<update_rule::lamb, fma>{});
  }
}

}  // namespace samebits::numerics
