// tree_sum against the tree built level by level, as the contract words it.
#include "samebits/reductions.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "support/level_sum.hpp"

namespace samebits {
namespace {

using support::level_by_level;

std::vector<double> numbers(std::size_t count) {
  std::mt19937_64 random(count + 7);
  std::vector<double> all(count);
  for (double& x : all) {
    x = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 80) - 60);
    if (random() % 2 == 0) x = -x;
  }
  return all;
}

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

TEST(TreeSum, IsTheTreeOfTheContract) {
  for (std::size_t count = 0; count < 300; ++count) {
    const auto x = numbers(count);
    tree_sum sum;
    sum.add(x);
    EXPECT_EQ(sum.count(), count);
    EXPECT_EQ(bits(sum.value()), bits(level_by_level(x))) << count;
  }
  const auto x = numbers(3 * 4096 + 5);
  tree_sum sum;
  sum.add(x);
  EXPECT_EQ(bits(sum.value()), bits(level_by_level(x)));
}

TEST(TreeSum, SquaresAreRoundedBeforeTheyAreAdded) {
  // (1 + 2^-27)^2 = 1 + 2^-26 + 2^-54: the last term is rounded off before the sum, so that an fma
  // into -(1 + 2^-26) would leave 2^-54 where the contract leaves 0.
  const double x = 1 + 0x1p-27;
  tree_sum sum;
  sum.add_squares(std::span(&x, 1));
  EXPECT_EQ(sum.value(), 1 + 0x1p-26);
  sum.add(-(1 + 0x1p-26));
  EXPECT_EQ(bits(sum.value()), 0u);
}

TEST(TreeSum, EmptyIsPlusZeroAndOneLeafIsItself) {
  tree_sum sum;
  EXPECT_EQ(bits(sum.value()), 0u);
  sum.add(-0.0);
  EXPECT_EQ(bits(sum.value()), bits(-0.0));
}

}  // namespace
}  // namespace samebits
