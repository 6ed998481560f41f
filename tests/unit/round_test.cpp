// round_shift: each mode's rule, by hand and against its definition on small integers.
#include "numerics/bits/round.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "oracle/specials.hpp"

namespace samebits::numerics {
namespace {

constexpr std::uint32_t q(rounding mode, std::uint32_t sig, std::uint32_t shift, bool negative) {
  return round_shift<std::uint32_t>(mode, sig, shift, negative, 0).q;
}

// 5.5 -> 6 and 4.5 -> 4 to even, away from zero, and so on.
static_assert(q(rounding::nearest_even, 0b101'1, 1, false) == 6);
static_assert(q(rounding::nearest_even, 0b100'1, 1, false) == 4);
static_assert(q(rounding::nearest_away, 0b100'1, 1, true) == 5);
static_assert(q(rounding::toward_zero, 0b101'1, 1, true) == 5);
static_assert(q(rounding::upward, 0b101'1, 1, false) == 6);
static_assert(q(rounding::upward, 0b101'1, 1, true) == 5);
static_assert(q(rounding::downward, 0b101'1, 1, true) == 6);
static_assert(q(rounding::to_odd, 0b100'1, 1, false) == 5);
static_assert(q(rounding::to_odd, 0b101'1, 1, false) == 5);

/// The definition with plain division; v is rem / 2^shift.
template <class Word>
Word by_definition(rounding mode, Word sig, int shift, bool negative, std::uint32_t r, int k) {
  const auto unit = static_cast<unsigned __int128>(1) << shift;
  const auto quotient = static_cast<Word>(sig / unit);
  const auto rem = sig % unit;
  if (mode == rounding::stochastic) {
    return quotient + ((rem << k) / unit + r >= static_cast<unsigned __int128>(1) << k ? 1 : 0);
  }
  const int to_half = 2 * rem < unit ? -1 : 2 * rem > unit ? 1 : 0;
  const bool away = rem != 0 && oracle::goes_away(mode, to_half, quotient % 2 == 1, negative);
  return quotient + (away ? 1 : 0);
}

template <class Word>
void check_small_integers() {
  constexpr int width = static_cast<int>(sizeof(Word) * 8);
  std::uint64_t compared = 0;
  for (Word sig = 0; sig < 64; ++sig) {
    for (const Word scaled : {sig, static_cast<Word>(sig << (width - 8)),
                              static_cast<Word>((sig << (width - 8)) | 1)}) {
      for (int shift = 1; shift <= 80; ++shift) {
        for (int mode = 0; mode < enum_count<rounding>; ++mode) {
          for (const bool negative : {false, true}) {
            for (const int k : {1, 5, 8, 32}) {
              const auto top = static_cast<std::uint32_t>((std::uint64_t{1} << k) - 1);
              for (const std::uint32_t r : {0u, 1u & top, top / 2, top - 1, top}) {
                const Word dither = static_cast<Word>(Word{r} << (width - k));
                const auto got = round_shift<Word>(static_cast<rounding>(mode), scaled,
                                                   static_cast<Word>(shift), negative, dither);
                const Word expected =
                    by_definition<Word>(static_cast<rounding>(mode), scaled, shift, negative, r, k);
                ASSERT_EQ(got.q, expected)
                    << name(static_cast<rounding>(mode)) << " sig " << scaled << " shift " << shift
                    << " negative " << negative << " r " << r << " k " << k;
                ASSERT_EQ(got.inexact,
                          (scaled % (static_cast<unsigned __int128>(1) << shift)) != 0);
                ++compared;
                if (shift >= width) continue;
                const auto within =
                    round_shift_within<Word>(static_cast<rounding>(mode), scaled,
                                             static_cast<Word>(shift), negative, dither);
                ASSERT_EQ(within.q, got.q);
                ASSERT_EQ(within.inexact, got.inexact);
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 4'000'000u);
}

TEST(RoundShift, LeavesWhatHasNothingToDiscard) {
  for (int mode = 0; mode < enum_count<rounding>; ++mode) {
    for (const bool negative : {false, true}) {
      for (const std::uint32_t sig : {0u, 1u, 2u, 3u, 0x7FFFFFFFu}) {
        const auto r = round_shift_within<std::uint32_t>(static_cast<rounding>(mode), sig, 0,
                                                         negative, 0xFFFFFFFFu);
        EXPECT_EQ(r.q, sig) << name(static_cast<rounding>(mode));
        EXPECT_FALSE(r.inexact);
      }
    }
  }
}

TEST(RoundShift, MatchesItsDefinition32) { check_small_integers<std::uint32_t>(); }
TEST(RoundShift, MatchesItsDefinition64) { check_small_integers<std::uint64_t>(); }

}  // namespace
}  // namespace samebits::numerics
