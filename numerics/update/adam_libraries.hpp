// Adam and AdamW: profiles apex_te and lightseq (contract §12).
//
// Sources: csrc/multi_tensor_adam.cu of Apex and multi_tensor/adam.cu of TransformerEngine; the
// fused Adam kernel of LightSeq2. Products and sums are contracted as nvcc 13.0 contracts these
// formulas for sm_90 in a kernel of one element per thread.
#pragma once

#include "numerics/update/adam.hpp"
#include "numerics/update/constants.hpp"
#include "numerics/update/update_arithmetic.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/optimizer.hpp"

namespace samebits::numerics {

/// weight - rate * RN(direction + w * weight); adam has no second term.
template <update_rule Rule, class Arithmetic, class Word>
SAMEBITS_INLINE constexpr Word moved(const update_constants& c, Word direction, Word weight) {
  if constexpr (Rule == update_rule::adamw) {
    direction = with_l2<update_profile::fma, Arithmetic>(c, direction, weight);
  }
  return Arithmetic::fused(negated(Word(c.rate)), direction, weight);
}

/// The averages as most kernels contract them: fma(b1, m, w1 * g) and fma(b2, v, g * (w2 * g)).
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr void library_averages(const update_constants& c,
                                                update_element<Word>& x) {
  const Word g = x.gradient;
  x.first = Arithmetic::fused(Word(c.b1), x.first, Arithmetic::product(Word(c.w1), g));
  const Word part = Arithmetic::product(g, Arithmetic::product(Word(c.w2), g));
  x.second = Arithmetic::fused(Word(c.b2), x.second, part);
}

/// One element's step of apex_te.
template <update_rule Rule, class Arithmetic, class Word>
SAMEBITS_INLINE constexpr void adam_apex_step(const update_constants& c, update_element<Word>& x) {
  if constexpr (Rule == update_rule::adamw) {
    const Word g = x.gradient;
    x.first = Arithmetic::fused(Word(c.w1), g, Arithmetic::product(Word(c.b1), x.first));
    const Word part = Arithmetic::product(Word(c.w2), g);
    x.second = Arithmetic::fused(g, part, Arithmetic::product(Word(c.b2), x.second));
  } else {
    x.gradient = with_l2<update_profile::fma, Arithmetic>(c, x.gradient, x.weight);
    library_averages<Arithmetic>(c, x);
  }
  const Word first = Arithmetic::quotient(x.first, Word(c.correction1));
  const Word second = Arithmetic::quotient(x.second, Word(c.correction2));
  const Word d = Arithmetic::sum(Arithmetic::square_root(second), Word(c.eps));
  x.weight = moved<Rule, Arithmetic>(c, Arithmetic::quotient(first, d), x.weight);
}

/// One element's step of lightseq.
template <update_rule Rule, class Arithmetic, class Word>
SAMEBITS_INLINE constexpr void adam_lightseq_step(const update_constants& c,
                                                  update_element<Word>& x) {
  if constexpr (Rule == update_rule::adam) {
    x.gradient = with_l2<update_profile::fma, Arithmetic>(c, x.gradient, x.weight);
  }
  library_averages<Arithmetic>(c, x);
  const Word d = Arithmetic::sum(Arithmetic::square_root(x.second), Word(c.eps));
  x.weight = moved<Rule, Arithmetic>(c, Arithmetic::quotient(x.first, d), x.weight);
}

}  // namespace samebits::numerics
