// LAMB: Adam's direction, scaled for each tensor by the norms of weights and direction (contract
// §12).
//
// Source: You et al.: Large Batch Optimization for Deep Learning (2020), algorithm 2. A step has two
// passes: the first updates and stores the states, the second moves the weights along a direction
// that both passes compute from the stored states.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary64.hpp"
#include "numerics/update/adam.hpp"
#include "numerics/update/constants.hpp"
#include "numerics/update/update_arithmetic.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/optimizer.hpp"

namespace samebits::numerics {

/// u: the direction, from weight and stored states; Profile is strict or fma.
template <update_profile Profile, class Arithmetic, class Word, class Number>
SAMEBITS_INLINE constexpr Word lamb_direction(const constants_in<Number>& c,
                                              const update_element<Word>& x) {
  const Word first = Arithmetic::product(x.first, Word(c.correction1));
  const Word u = Arithmetic::quotient(first, denominator<Arithmetic>(c, x.second));
  return with_l2<Profile, Arithmetic>(c, u, x.weight);
}

/// f(lr * z), the factor of the direction. The norms are binary64 bits.
template <class Number>
SAMEBITS_HD constexpr Number lamb_factor(const constants_in<Number>& c, std::uint64_t weights,
                                         std::uint64_t direction) {
  const bool known =
      weights != 0 && direction != 0 && weights < binary64::inf && direction < binary64::inf;
  const std::uint64_t ratio = known ? binary64::divide(weights, direction) : binary64::one;
  const std::uint64_t factor = binary64::multiply(c.lamb_rate, ratio);
  if constexpr (sizeof(Number) == sizeof(factor)) {
    return factor;
  } else {
    return binary64::narrow(factor);
  }
}

/// The weight after the step. `factor` is lamb_factor() of the tensor.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr Word lamb_weight(Word factor, Word direction, Word weight) {
  return Arithmetic::sum(weight, negated(Arithmetic::product(factor, direction)));
}

}  // namespace samebits::numerics
