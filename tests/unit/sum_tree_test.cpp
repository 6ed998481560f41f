// numerics/sums/sum_tree.hpp and numerics/sums/shard_tree.hpp against the tree built level by
// level, with an addition that shows the shape of the tree: it is neither commutative nor
// associative.
#include "numerics/sums/sum_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "numerics/sums/shard_tree.hpp"

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

/// The partial sums of parts, as they lie in a message each.
struct sent {
  std::vector<received_sum> partial_sums;
  std::vector<partial_sum> values;
  std::vector<std::uint64_t> chunk;  ///< the first one of each partial sum
};

sent parts_of(const std::vector<partial_sum>& chunks, const std::vector<std::uint64_t>& borders) {
  sent all;
  for (std::size_t p = 0; p + 1 < borders.size(); ++p) {
    const bool last = borders[p + 1] == chunks.size();
    const auto what = last ? part_end::of_tensor : part_end::before_others;
    std::uint64_t next = borders[p];
    for_each_shard_sum(
        borders[p], borders[p + 1], what, [&](std::uint64_t at, std::uint64_t n, int level) {
          EXPECT_EQ(at, next);
          EXPECT_LE(level, slot_level);
          EXPECT_LE(n, std::uint64_t{1} << level);
          EXPECT_EQ(at % (std::uint64_t{1} << level), 0u);
          EXPECT_TRUE(last || n == std::uint64_t{1} << level);
          const std::uint64_t above = std::uint64_t{2} << level;  // the next larger partial sum
          EXPECT_TRUE(level == slot_level || at % above != 0 ||
                      (!last && at + above > borders[p + 1]));
          next = at + n;
          const auto first = chunks.begin() + static_cast<std::ptrdiff_t>(at);
          all.partial_sums.push_back({all.values.size(), static_cast<std::uint32_t>(level), 0});
          all.values.push_back(level_by_level({first, first + static_cast<std::ptrdiff_t>(n)}));
          all.chunk.push_back(at);
        });
    EXPECT_EQ(next, borders[p + 1]);
  }
  return all;
}

TEST(ShardTree, SlotsAreThoseOfTheWholeTensor) {
  std::mt19937_64 random(3);
  for (std::uint64_t round = 0; round < 400; ++round) {
    const std::size_t sizes[] = {1, 2, 9, 1 + random() % 64, 1023 + random() % 3, 2049};
    const std::vector<partial_sum> chunks = inputs(sizes[random() % std::size(sizes)], round);
    std::vector<std::uint64_t> borders = {0, chunks.size()};
    for (std::uint64_t cuts = random() % 6; cuts > 0; --cuts) {
      borders.push_back(random() % (chunks.size() + 1));
    }
    std::sort(borders.begin(), borders.end());
    const sent all = parts_of(chunks, borders);
    std::size_t first = 0;
    for (std::uint64_t begin = 0; begin < chunks.size(); begin += slot_chunks) {
      const std::uint64_t end = std::min<std::uint64_t>(begin + slot_chunks, chunks.size());
      std::size_t behind = first;
      while (behind < all.chunk.size() && all.chunk[behind] < end) ++behind;
      const partial_sum got = slot_sum<partial_sum>(
          all.partial_sums.data() + first, behind - first,
          [&](std::uint64_t word) { return all.values[word]; }, add);
      const auto at = [&](std::uint64_t n) {
        return chunks.begin() + static_cast<std::ptrdiff_t>(n);
      };
      ASSERT_EQ(got, level_by_level({at(begin), at(end)})) << round << ", slot from " << begin;
      first = behind;
    }
    EXPECT_EQ(first, all.partial_sums.size());
  }
}

static_assert(slot_chunks == 1024);

}  // namespace
}  // namespace samebits::numerics
