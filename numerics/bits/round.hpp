// Rounding: the single definition of every rounding mode of the library.
#pragma once

#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

/// The result of rounding to an integer.
template <class Word>
struct rounded {
  Word q;                 ///< the rounded integer: floor(sig / 2^shift) or one more
  mask_of<Word> inexact;  ///< sig is not a multiple of 2^shift
};

/// Rounds sig / 2^shift to an integer (contract §3), for shifts below the Word's width.
///
/// @param sig  magnitude; sig + 2^shift must fit the Word
/// @param negative  sign of the value; used by the two directed modes
/// @param dither  the K random bits at the top of the Word, zeros below; stochastic only
///
///   sig    q q q q . r r r r r r         q = floor(sig / 2^shift)
///   below  0 0 0 0 . 1 1 1 1 1 1
///
/// Every mode adds a number to the r bits and truncates; a carry into q is the step away from zero.
/// Stochastic rounding steps away if floor(v * 2^K) + R >= 2^K, where v is the fraction. This
/// condition is the carry too, once R's top bits are aligned with the r bits. If K < shift, the r
/// bits below R's last bit cannot cause a carry. If K > shift, the bits of R that fall off cannot
/// cause one.
template <class Word>
SAMEBITS_INLINE constexpr rounded<Word> round_shift_within(rounding mode, Word sig, Word shift,
                                                           mask_of<Word> negative, Word dither) {
  using element = element_of<Word>;
  constexpr element limit = binary<element>::width - 1;
  const Word one = element{1};
  const Word zero = element{0};
  const Word below = (one << shift) - one;
  const Word odd = sig >> shift;  // only its last bit is used

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

/// Like round_shift_within(), for any shift >= 1. The two highest bits of sig must be 0: sig < 2^30
/// in 32 bits, sig < 2^62 in 64 bits.
template <class Word>
SAMEBITS_INLINE constexpr rounded<Word> round_shift(rounding mode, Word sig, Word shift,
                                                    mask_of<Word> negative, Word dither) {
  using element = element_of<Word>;
  constexpr element limit = binary<element>::width - 1;
  // For shifts of `limit` or more, every sig lies below half a unit. They all round alike.
  const Word d = min_word(shift, Word(limit));
  if (mode != rounding::stochastic) return round_shift_within(mode, sig, d, negative, dither);

  // Stochastic rounding depends on the full shift, also beyond `limit`. The fraction is
  // left-aligned in the Word and shifted down by the rest of the shift. The carry out of the Word
  // decides.
  const Word q = sig >> d;
  const Word fraction = discarded(sig, shift);
  const mask_of<Word> away = (fraction + dither) < fraction;
  return {select(away, q + Word(element{1}), q), (q << d) != sig};
}

}  // namespace samebits::numerics
