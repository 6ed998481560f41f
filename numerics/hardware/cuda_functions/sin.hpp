// sin: CUDA's sinf and cosf as nvcc 13.0 compiles them for sm_90, without fast-math flags.
//
// Source: the PTX that nvcc 13.0.88 emits. The functions use no function unit.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/cuda_functions/two_over_pi.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::cuda_13_0 {

using namespace ptx;  // NOLINT(google-build-using-namespace): steps of any Word

/// x - quadrant * pi/2 for |x| < 105615, pi/2 in three parts.
template <class Word>
SAMEBITS_HD constexpr quarter_turns<Word> reduce_small_angle(Word x) {
  const Word quadrant = to_int(nearest_whole(mul(x, Word(0x3F22F983))));
  const Word turns = from_int(quadrant);
  Word angle = fma(turns, Word(0xBFC90FDA), x);
  angle = fma(turns, Word(0xB3A22168), angle);
  return {fma(turns, Word(0xA7C234C5), angle), quadrant};
}

/// x as quarter turns and a rest of about -pi/4 .. pi/4.
template <class Word>
SAMEBITS_HD constexpr quarter_turns<Word> reduce_angle(Word x) {
  const quarter_turns<Word> small = reduce_small_angle(x);
  const mask_of<Word> large = (abs(x) >= Word(0x47CE4780)) & (abs(x) < Word(binary32::inf));
  const mask_of<Word> infinite = abs(x) == Word(binary32::inf);
  const quarter_turns<Word> exact = reduce_large_angle(large, x, small);
  return {select(infinite, mul(x, Word(0u)), exact.angle),
          select(infinite, Word(0u), exact.quadrant)};
}

/// sin(turns.angle + turns.quadrant * pi/2).
template <class Word>
SAMEBITS_HD constexpr Word sin_of_turns(const quarter_turns<Word>& turns) {
  const Word zero = 0u;
  const mask_of<Word> even = (turns.quadrant & Word(1u)) == zero;
  const Word factor = select(even, turns.angle, Word(binary32::one));
  const Word square = mul(turns.angle, turns.angle);
  const Word cosine = fma(Word(0x37CBAC00), square, Word(0xBAB607ED));
  Word sum = select(even, Word(0xB94D4153), cosine);
  sum = fma(sum, square, select(even, Word(0x3C0885E4), Word(0x3D2AAABB)));
  sum = fma(sum, square, select(even, Word(0xBE2AAAA8), Word(0xBEFFFFFF)));
  const Word result = fma(sum, fma(square, factor, zero), factor);
  const mask_of<Word> negated = (turns.quadrant & Word(2u)) != zero;
  return select(negated, fma(result, Word(0xBF800000), zero), result);
}

/// sinf(x): a polynomial in x - n * pi/2.
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word sin(operand<Word> x) {
  return sin_of_turns(reduce_angle<Word>(x));
}

/// cosf(x) has the steps of sinf, one quadrant on.
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word cos(operand<Word> x) {
  const quarter_turns<Word> turns = reduce_angle<Word>(x);
  return sin_of_turns(quarter_turns<Word>{turns.angle, turns.quadrant + Word(1u)});
}

}  // namespace samebits::numerics::cuda_13_0
