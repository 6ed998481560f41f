// round_shift: each mode's rule, by hand. The recorded cases of support.mutation_killer and
// property.convert compare its results in both widths with the oracle.
#include "numerics/bits/round.hpp"

#include <gtest/gtest.h>

#include <cstdint>

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

}  // namespace
}  // namespace samebits::numerics
