// Even draws: every pair of values occurs, and what is missing is named.
#include "engine/core/even_draw.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <stdexcept>

namespace samebits::support {
namespace {

TEST(EvenDraw, MeetsEveryPairInFewCases) {
  even_draw draws;
  for (int i = 0; i < 288; ++i) {  // twice the largest product of two counts
    draws.begin();
    draws.draw("first", 12);
    for (const char* option : {"second", "third", "fourth"}) draws.draw(option, 4);
    draws.draw("fifth", 12);
  }
  EXPECT_EQ(draws.missing(), "");
}

TEST(EvenDraw, NamesThePairsThatNeverOccurred) {
  even_draw draws;
  for (std::size_t i = 0; i < 6; ++i) {
    draws.begin();
    draws.fix("format", i % 3, 3);
    draws.fix("policy", i % 3, 3);  // tied to the format
  }
  EXPECT_EQ(draws.missing(),
            "6 pairs never occurred: format 0 with policy 1; format 0 with policy 2; format 1 with "
            "policy 0; format 1 with policy 2; format 2 with policy 0; format 2 with policy 1; ");
}

TEST(EvenDraw, RefusesOptionsInAnotherOrder) {
  even_draw draws;
  draws.begin();
  draws.draw("a", 2);
  draws.begin();
  EXPECT_THROW(draws.draw("b", 2), std::logic_error);
  EXPECT_THROW(draws.draw("a", 3), std::logic_error);
  EXPECT_THROW(draws.fix("a", 2, 2), std::logic_error);
}

}  // namespace
}  // namespace samebits::support
