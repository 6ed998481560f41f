// Rounding: every rounding rule of the library, once.
#pragma once

#include "numerics/config.hpp"
#include "numerics/word.hpp"
#include "samebits/rounding.hpp"

namespace samebits::numerics {

template <class Word>
struct rounded {
  Word q;                 ///< the rounded integer, at most one above floor(sig / 2^shift)
  mask_of<Word> inexact;  ///< sig was not a multiple of 2^shift
};

/// sig / 2^shift rounded to an integer (contract §3).
///
/// sig      magnitude; where shift may reach the Word's width - 1, its two highest bits must be 0
///          (sig < 2^30 in 32 bits, 2^62 in 64)
/// shift    discarded bits, any amount
/// negative sign of the value, for the two directed modes
/// dither   stochastic only: the K random bits at the top of the Word, zeros below
///
///   sig    q q q q . r r r r r r         q = floor(sig / 2^shift)
///                    half ^              rem = the r bits, half = 2^(shift - 1)
///
/// Stochastic compares floor(v * 2^K) + R with 2^K. With the fraction v and R both left-aligned
/// in the Word that is the carry out of one addition; the fraction's bits below the K-th cannot
/// change it, since R has zeros there.
template <class Word>
SAMEBITS_INLINE constexpr rounded<Word> round_shift(rounding mode, Word sig, Word shift,
                                                    mask_of<Word> negative, Word dither) {
  using element = element_of<Word>;
  constexpr element limit = binary<element>::width - 1;
  const Word one = element{1};
  const Word zero = element{0};

  // Beyond `limit` every sig lies below half of the unit, as it does at `limit`.
  const Word d = min_word(shift, Word(limit));
  const Word q = sig >> d;
  const Word rem = sig - (q << d);
  const Word half = (one << d) >> element{1};
  const Word odd = q & one;
  const mask_of<Word> inexact = rem != zero;

  mask_of<Word> away = inexact & !inexact;
  switch (mode) {
    case rounding::nearest_even:
      away = (rem > half) | (inexact & (rem == half) & (odd != zero));
      break;
    case rounding::nearest_away: away = inexact & (rem >= half); break;
    case rounding::toward_zero: break;
    case rounding::upward: away = inexact & !negative; break;
    case rounding::downward: away = inexact & negative; break;
    case rounding::to_odd: away = inexact & (odd == zero); break;
    case rounding::stochastic: {
      const Word aligned = (rem << (Word(limit) - d)) << element{1};
      const Word fraction = aligned >> min_word(shift - d, Word(limit));
      away = (fraction + dither) < fraction;
      break;
    }
  }
  return {select(away, q + one, q), inexact};
}

}  // namespace samebits::numerics
