// Slices of K: which elements each slice adds, one tile after the other.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "numerics/hardware/k_slices.hpp"
#include "samebits/core/accumulator.hpp"

namespace samebits {
namespace {

using elements = std::vector<std::int64_t>;

elements elements_of(const numerics::k_slices& slices, std::int64_t i) {
  elements all;
  slices.for_each(i, [&](std::int64_t k) { all.push_back(k); });
  return all;
}

/// One tile after the other: `slice_of` gives the slice of a tile.
template <class SliceOf>
std::vector<elements> in_tiles(std::int64_t depth, std::int64_t tile, std::int64_t slices,
                               const SliceOf& slice_of) {
  std::vector<elements> all(static_cast<std::size_t>(slices));
  for (std::int64_t k = 0; k < depth; ++k) {
    all[static_cast<std::size_t>(slice_of(k / tile))].push_back(k);
  }
  std::erase_if(all, [](const elements& slice) { return slice.empty(); });
  return all;
}

/// The same with zeros behind the elements `ends` and behind the last one, up to whole instructions.
elements padded(const elements& slice, std::int64_t products, const std::set<std::size_t>& ends) {
  elements all;
  for (std::size_t i = 0; i < slice.size(); ++i) {
    all.push_back(slice[i]);
    if (!ends.contains(i + 1) && i + 1 != slice.size()) continue;
    while (static_cast<std::int64_t>(all.size()) % products != 0) {
      all.push_back(numerics::no_element);
    }
  }
  return all;
}

void expect_slices(const accumulator& sum, std::int64_t depth, std::int64_t products) {
  const bool cyclic = sum.slice_order == slice_order::cyclic;
  const std::int64_t tiles = (depth + sum.slice_tile - 1) / sum.slice_tile;
  const std::int64_t of_one = (tiles + sum.slices - 1) / sum.slices;
  const std::vector<elements> all =
      in_tiles(depth, sum.slice_tile, sum.slices,
               [&](std::int64_t tile) { return cyclic ? tile % sum.slices : tile / of_one; });
  const numerics::k_slices slices(sum, depth, products);
  ASSERT_EQ(slices.count(), static_cast<std::int64_t>(all.size()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::set<std::size_t> ends;
    for (std::size_t e = 1; cyclic && all.size() > 1 && e < all[i].size(); ++e) {
      if (all[i][e] / sum.slice_tile != all[i][e - 1] / sum.slice_tile) ends.insert(e);
    }
    if (sum.residue_tile != 0) {
      ends.insert(all[i].size() % static_cast<std::size_t>(sum.residue_tile));
    }
    ASSERT_EQ(elements_of(slices, static_cast<std::int64_t>(i)), padded(all[i], products, ends))
        << depth << " by " << sum.slices << ", slice " << i;
  }
}

TEST(KSlices, EveryElementBelongsToTheSliceOfItsTile) {
  for (const std::int64_t depth : {1, 2, 7, 16, 31, 64, 100}) {
    for (const std::int64_t count : {1, 2, 3, 7, 200}) {
      for (const std::int64_t tile : {1, 3, 16, 100}) {
        for (const std::int64_t products : {1, 4, 16}) {
          accumulator sum = accumulator::exact();
          sum.slices = count;
          sum.slice_tile = tile;
          for (const std::int64_t residue : {0, 5, 16}) {
            sum.residue_tile = residue;
            expect_slices(sum, depth, products);
          }
          sum.residue_tile = 0;
          sum.slice_order = slice_order::cyclic;
          expect_slices(sum, depth, products);
        }
      }
    }
  }
}

TEST(KSlices, OfNoElementsAreOne) {
  accumulator sum = accumulator::exact();
  sum.slices = 3;
  sum.slice_tile = 8;
  for (const slice_order order : {slice_order::contiguous, slice_order::cyclic}) {
    sum.slice_order = order;
    const numerics::k_slices slices(sum, 0, 16);
    EXPECT_EQ(slices.count(), 1);
    EXPECT_TRUE(elements_of(slices, 0).empty());
  }
}

}  // namespace
}  // namespace samebits
