// Adam and AdamW: profiles torch_foreach and torch_fused (contract §12).
//
// Source: PyTorch 2.11 on an H100, by experiment: every operation's rounding was varied until no bit
// differed.
#pragma once

#include "numerics/update/adam.hpp"
#include "numerics/update/constants.hpp"
#include "numerics/update/update_arithmetic.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/optimizer.hpp"

namespace samebits::numerics {

/// One element's step of torch_foreach. PyTorch runs one kernel for each line and stores its result
/// in the parameter's format: `rounded` rounds to this format.
template <update_rule Rule, class Arithmetic, class Word, class Rounded>
SAMEBITS_INLINE constexpr void adam_foreach_step(const update_constants& c, update_element<Word>& x,
                                                 const Rounded& rounded) {
  x.gradient = rounded(x.gradient);
  if constexpr (Rule == update_rule::adamw) {
    if (c.decays) x.weight = rounded(Arithmetic::product(x.weight, Word(c.keep)));
  } else {
    if (c.decays) x.gradient = rounded(Arithmetic::fused(Word(c.l2), x.weight, x.gradient));
  }
  const Word g = x.gradient;
  const Word distance = Arithmetic::sum(g, negated(x.first));
  x.first = rounded(Arithmetic::fused(Word(c.w1), distance, x.first));
  x.second = rounded(Arithmetic::product(x.second, Word(c.b2)));
  x.second = rounded(Arithmetic::fused(Word(c.w2), Arithmetic::product(g, g), x.second));
  Word d = rounded(Arithmetic::square_root(x.second));
  d = rounded(Arithmetic::quotient(d, Word(c.root)));
  d = rounded(Arithmetic::sum(d, Word(c.eps)));
  x.weight = Arithmetic::fused(Word(c.rate), Arithmetic::quotient(x.first, d), x.weight);
}

/// fma(b, old, fma(-b, x, x)): the average of torch_fused.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr Word fused_average(Word b, Word old, Word x) {
  return Arithmetic::fused(b, old, Arithmetic::fused(negated(b), x, x));
}

/// One element's step of torch_fused.
template <update_rule Rule, class Arithmetic, class Word>
SAMEBITS_INLINE constexpr void adam_fused_step(const update_constants& c, update_element<Word>& x) {
  if constexpr (Rule == update_rule::adamw) {
    x.weight = decayed<update_profile::fma, Arithmetic>(c, x.weight);
  } else {
    x.gradient = with_l2<update_profile::fma, Arithmetic>(c, x.gradient, x.weight);
  }
  const Word g = x.gradient;
  x.first = fused_average<Arithmetic>(Word(c.b1), x.first, g);
  x.second = fused_average<Arithmetic>(Word(c.b2), x.second, Arithmetic::product(g, g));
  const Word d = denominator<Arithmetic>(c, x.second);
  const Word change = Arithmetic::quotient(Arithmetic::product(Word(c.rate), x.first), d);
  x.weight = Arithmetic::sum(x.weight, negated(change));
}

}  // namespace samebits::numerics
