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
  static constexpr int states = state_count({.rule = Rule, .momentum = HasMomentum ? 1 : 0});

  /// Computes the new weight and states of one element. lamb: only the states.
  ///
  /// @param x  the gradient is the tensor's value; it is multiplied by grad_mul here
  /// @param rounded  rounds to the weights' format; not_rounded unless torch_foreach updates 16-bit
  ///   weights without master or low part
  template <class Arithmetic, class Number, class Word, class Rounded = not_rounded>
  SAMEBITS_INLINE static constexpr void apply(const constants_in<Number>& c,
                                              update_element<Word>& x,
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

/// The profile whose steps a profile takes: torch_fused of sgd is fma.
constexpr update_profile steps_of(update_rule rule, update_profile profile) {
  const bool fused_sgd = rule == update_rule::sgd && profile == update_profile::torch_fused;
  return fused_sgd ? update_profile::fma : profile;
}

/// Calls f with the update_formula of checked settings. Host only: a launch chooses its kernel.
template <class Function>
constexpr void visit_formula(const optimizer_settings& s, const Function& f) {
  with_enumerator(s.rule, [&]<update_rule R>() {
    with_enumerator(s.profile, [&]<update_profile P>() {
      if constexpr (has_profile(R, P)) {
        if constexpr (R == update_rule::sgd) {
          if (s.momentum != 0) return f(update_formula<R, steps_of(R, P), true>{});
        }
        f(update_formula<R, steps_of(R, P)>{});
      }
    });
  });
}

}  // namespace samebits::numerics
