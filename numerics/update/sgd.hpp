// SGD with momentum, dampening and Nesterov (contract §12).
#pragma once

#include "numerics/update/adam.hpp"
#include "numerics/update/constants.hpp"
#include "numerics/update/update_arithmetic.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/optimizer.hpp"

namespace samebits::numerics {

/// The new momentum buffer. It becomes the gradient in the first step.
template <update_profile Profile, class Arithmetic, class Word, class Rounded, class Number>
SAMEBITS_INLINE constexpr Word momentum_buffer(const constants_in<Number>& c, Word buffer, Word g,
                                               const Rounded& rounded) {
  if (c.first_step) return g;
  const Word kept = Arithmetic::product(Word(c.b1), buffer);
  if constexpr (Profile == update_profile::strict) {
    return Arithmetic::sum(kept, Arithmetic::product(Word(c.w1), g));
  } else if constexpr (Profile == update_profile::torch_foreach) {
    return rounded(Arithmetic::fused(Word(c.w1), g, rounded(kept)));
  } else {
    return Arithmetic::fused(Word(c.w1), g, kept);
  }
}

/// One element's step of sgd. `HasMomentum` says whether there is a state. `rounded` as in
/// adam_foreach_step(); only torch_foreach uses it.
template <update_profile Profile, bool HasMomentum, class Arithmetic, class Word, class Rounded,
          class Number>
SAMEBITS_INLINE constexpr void sgd_step(const constants_in<Number>& c, update_element<Word>& x,
                                        const Rounded& rounded) {
  constexpr bool foreach = Profile == update_profile::torch_foreach;
  Word g = x.gradient;
  if constexpr (foreach) g = rounded(g);
  if (c.decays) {
    g = with_l2<Profile, Arithmetic>(c, g, x.weight);
    if constexpr (foreach) g = rounded(g);
  }
  if constexpr (HasMomentum) {
    x.first = momentum_buffer<Profile, Arithmetic>(c, x.first, g, rounded);
    if (!c.nesterov) {
      g = x.first;
    } else if constexpr (Profile == update_profile::strict) {
      g = Arithmetic::sum(g, Arithmetic::product(Word(c.b1), x.first));
    } else {
      g = Arithmetic::fused(Word(c.b1), x.first, g);
      if constexpr (foreach) g = rounded(g);
    }
  }
  if constexpr (Profile == update_profile::strict) {
    x.weight = Arithmetic::sum(x.weight, negated(Arithmetic::product(Word(c.rate), g)));
  } else {
    x.weight = Arithmetic::fused(negated(Word(c.rate)), g, x.weight);
  }
}

}  // namespace samebits::numerics
