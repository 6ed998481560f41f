// Rounding: every rounding rule of the library, once.
#pragma once

#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

template <class Word>
struct rounded {
  Word q;                 ///< the rounded integer, at most one above floor(sig / 2^shift)
  mask_of<Word> inexact;  ///< sig was not a multiple of 2^shift
};

/// sig / 2^shift rounded to an integer (contract §3), for shifts below the Word's width.
///
/// sig      magnitude; sig + 2^shift must fit the Word
/// negative sign of the value, for the two directed modes
/// dither   stochastic only: the K random bits at the top of the Word, zeros below
///
///   sig    q q q q . r r r r r r         q = floor(sig / 2^shift)
///   below  0 0 0 0 . 1 1 1 1 1 1
///
/// Every mode adds something to the r bits and truncates: the carry into q is the step away from
/// zero. Stochastic asks for floor(v * 2^K) + R >= 2^K; with R's top bits moved onto the r bits
/// that is this carry too: where K < shift the r bits under R's last cannot cause one, and where
/// K > shift the bits of R that fall off cannot.
template <class Word>
SAMEBITS_INLINE constexpr rounded<Word> round_shift_within(rounding mode, Word sig, Word shift,
                                                           mask_of<Word> negative, Word dither) {
  using element = element_of<Word>;
  constexpr element limit = binary<element>::width - 1;
  const Word one = element{1};
  const Word zero = element{0};
  const Word below = (one << shift) - one;
  const Word odd = sig >> shift;  // in its last bit; the others do not matter

  Word addend = zero;
  switch (mode) {
    case rounding::nearest_even: addend = (below >> element{1}) + (odd & below & one); break;
    case rounding::nearest_away: addend = (below >> element{1}) + (below & one); break;
    case rounding::toward_zero: break;
    case rounding::upward: addend = select(negative, zero, below); break;
    case rounding::downward: addend = select(negative, below, zero); break;
    case rounding::to_odd: addend = select((odd & one) == zero, below, zero); break;
    case rounding::stochastic: addend = (dither >> element{1}) >> (Word(limit) - shift); break;
  }
  return {(sig + addend) >> shift, (sig & below) != zero};
}

/// The same for any shift >= 1; sig's two highest bits must be 0 (sig < 2^30 in 32 bits, 2^62 in
/// 64).
template <class Word>
SAMEBITS_INLINE constexpr rounded<Word> round_shift(rounding mode, Word sig, Word shift,
                                                    mask_of<Word> negative, Word dither) {
  using element = element_of<Word>;
  constexpr element limit = binary<element>::width - 1;
  // Beyond `limit` every sig lies below half of the unit, as it does at `limit`.
  const Word d = min_word(shift, Word(limit));
  if (mode != rounding::stochastic) return round_shift_within(mode, sig, d, negative, dither);

  // Here the distance beyond `limit` counts: the fraction, left-aligned in the Word, moves down by
  // it, and the carry out of the Word decides.
  const Word q = sig >> d;
  const Word fraction = discarded(sig, shift);
  const mask_of<Word> away = (fraction + dither) < fraction;
  return {select(away, q + Word(element{1}), q), (q << d) != sig};
}

}  // namespace samebits::numerics
