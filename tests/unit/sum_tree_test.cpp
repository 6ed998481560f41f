// numerics/sums/sum_tree.hpp against the tree built level by level, with an addition that shows the shape
// of the tree: it is neither commutative nor associative. property.shard_tree tests shards.
#include "numerics/sums/sum_tree.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace samebits::numerics {
namespace {

using partial_sum = std::uint64_t;

constexpr partial_sum add(partial_sum left, partial_sum right) {
  return (left ^ (left >> 29)) * 0x9E3779B97F4A7C15u + (right ^ (right >> 31)) * 5 + 1;
}

/// Neighbours 2j and 2j+1 level by level; a lone last one passes up.
partial_sum level_by_level(std::vector<partial_sum> level) {
  if (level.empty()) return 0;
  for (; level.size() > 1; level.resize((level.size() + 1) / 2)) {
    for (std::size_t j = 0; j < level.size() / 2; ++j) {
      level[j] = add(level[2 * j], level[2 * j + 1]);
    }
    if (level.size() % 2 == 1) level[level.size() / 2] = level.back();
  }
  return level[0];
}

/// A sum under way.
struct scenario {
  partial_sum waiting[64] = {};
  std::uint64_t count = 0;

  constexpr void append(int level, partial_sum value) {
    append_partial_sum(waiting, count, level, value, add);
  }
  [[nodiscard]] constexpr partial_sum root() const {
    return root_of_tree(waiting, count, partial_sum{0}, add);
  }
};

std::vector<partial_sum> inputs(std::size_t count, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<partial_sum> all(count);
  for (partial_sum& input : all) input = random();
  return all;
}

TEST(SumTree, LeafByLeaf) {
  for (std::size_t count = 0; count < 300; ++count) {
    scenario sum;
    for (const partial_sum input : inputs(count)) append_input(sum.waiting, sum.count, input, add);
    EXPECT_EQ(sum.count, count);
    EXPECT_EQ(sum.root(), level_by_level(inputs(count)));
  }
}

TEST(SumTree, ByCompleteNodesOfAnyLevel) {
  std::mt19937_64 random(2);
  for (std::uint64_t round = 0; round < 300; ++round) {
    const std::vector<partial_sum> all = inputs(random() % 600, round);
    scenario sum;
    while (sum.count < all.size()) {
      int level = static_cast<int>(random() % 9);
      while (sum.count % (std::uint64_t{1} << level) != 0 ||
             sum.count + (std::uint64_t{1} << level) > all.size()) {
        --level;
      }
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(sum.count);
      const std::uint64_t before = sum.count;
      sum.append(level, level_by_level({first, first + (std::ptrdiff_t{1} << level)}));
      ASSERT_EQ(sum.count, before + (std::uint64_t{1} << level));
    }
    ASSERT_EQ(sum.root(), level_by_level(all)) << all.size();
  }
}

constexpr partial_sum of_three() {
  scenario sum;
  for (const partial_sum input : {7u, 8u, 9u}) sum.append(0, input);
  return sum.root();
}
static_assert(of_three() == add(add(7, 8), 9) && scenario{}.root() == 0);
static_assert(chunk_elements == 4096);

}  // namespace
}  // namespace samebits::numerics
