// Slices of K: which elements each slice adds. The sum is that of a program that hands out one tile after
// the other and shares no code with the library. engine.matmul_oracle compares sums of slices.
#include <gtest/gtest.h>

#include <cstdint>

#include "numerics/hardware/k_slices.hpp"
#include "samebits/core/accumulator.hpp"
#include "support/function_sum.hpp"

namespace samebits {
namespace {

void add_slices(support::word_sum& words, const accumulator& sum, std::int64_t depth,
                std::int64_t products) {
  const numerics::k_slices slices(sum, depth, products);
  for (std::int64_t i = 0; i < slices.count(); ++i) {
    slices.for_each(i, [&](std::int64_t k) { words.add(static_cast<std::uint32_t>(k)); });
    words.add(0xFFFF);  // the end of a slice
  }
}

TEST(KSlices, EveryElementBelongsToTheSliceOfItsTile) {
  support::word_sum words;
  for (const std::int64_t depth : {1, 2, 7, 16, 31, 64, 100}) {
    for (const std::int64_t count : {1, 2, 3, 7, 200}) {
      for (const std::int64_t tile : {1, 3, 16, 100}) {
        for (const std::int64_t products : {1, 4, 16}) {
          accumulator sum = accumulator::exact();
          sum.slices = count;
          sum.slice_tile = tile;
          for (const std::int64_t residue : {0, 5, 16}) {
            sum.residue_tile = residue;
            add_slices(words, sum, depth, products);
          }
          sum.residue_tile = 0;
          sum.slice_order = slice_order::cyclic;
          add_slices(words, sum, depth, products);
        }
      }
    }
  }
  EXPECT_EQ(words.value(), 0xB2F125DD66E778C8u);
}

TEST(KSlices, OfNoElementsAreOne) {
  accumulator sum = accumulator::exact();
  sum.slices = 3;
  sum.slice_tile = 8;
  for (const slice_order order : {slice_order::contiguous, slice_order::cyclic}) {
    sum.slice_order = order;
    const numerics::k_slices slices(sum, 0, 16);
    EXPECT_EQ(slices.count(), 1);
    slices.for_each(0, [](std::int64_t k) { ADD_FAILURE() << k; });
  }
}

}  // namespace
}  // namespace samebits
