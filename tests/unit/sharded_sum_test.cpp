// Sharded sums against the tree built level by level over all leaves; property.shard_tree has any
// cut and any ranks.
#include "samebits/distributed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "samebits/error.hpp"
#include "samebits/testkit/ranks.hpp"
#include "samebits/types.hpp"
#include "support/level_sum.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

using support::level_by_level;

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

std::vector<float> numbers(std::size_t count, std::mt19937_64& random) {
  std::vector<float> all(count);
  for (float& x : all) {
    x = std::ldexp(static_cast<float>(random() >> 40), static_cast<int>(random() % 60) - 50);
  }
  return all;
}

std::vector<double> squares(const std::vector<float>& x) {
  std::vector<double> all;
  for (const float v : x) all.push_back(static_cast<double>(v) * static_cast<double>(v));
  return all;
}

TEST(TreeSum, NodesThatStandNowhereAreRefused) {
  tree_sum sum;
  sum.add(1.0);
  EXPECT_THROW(sum.add_partial_sum(1, 2.0), invalid_argument);
  EXPECT_THROW(sum.add_partial_sum(-1, 2.0), invalid_argument);
  EXPECT_THROW(sum.add_partial_sum(63, 2.0), invalid_argument);
  EXPECT_EQ(sum.count(), 1u);
  sum.add_partial_sum(0, 2.0);
  sum.add_partial_sum(1, 4.0);
  EXPECT_EQ(sum.count(), 4u);
  EXPECT_EQ(sum.value(), 7.0);
  tree_sum large;
  large.add_partial_sum(62, 1.0);
  large.add_partial_sum(62, 1.0);
  EXPECT_THROW(large.add_partial_sum(0, 1.0), invalid_argument);  // 2^63 inputs are the most
  EXPECT_EQ(large.value(), 2.0);
}

TEST(TreeSum, NaNIsTheCanonicalOne) {
  for (const std::uint64_t nan : {0x7FF8000000000000u, 0xFFF8000000000001u, 0x7FF0000000000001u}) {
    tree_sum sum;
    sum.add(1.0);
    sum.add(std::bit_cast<double>(nan));
    EXPECT_EQ(bits(sum.value()), 0x7FFFFFFFFFFFFFFFu);
  }
  tree_sum opposite;
  opposite.add(std::numeric_limits<double>::infinity());
  opposite.add(-std::numeric_limits<double>::infinity());
  EXPECT_EQ(bits(opposite.value()), 0x7FFFFFFFFFFFFFFFu);
}

TEST(TreePart, KeepsTheLargestSubtrees) {
  const auto count = [](std::uint64_t first, std::uint64_t chunks, std::uint64_t tail) {
    tree_part part(first * 4096);
    part.add_chunks(std::vector<double>(chunks, 1.0));
    part.add(std::vector<double>(tail, 1.0));
    EXPECT_EQ(part.count(), chunks * 4096 + tail);
    return part.subtrees();
  };
  EXPECT_EQ(count(0, 0, 0), (std::vector<double>{}));
  EXPECT_EQ(count(0, 8, 0), (std::vector<double>{8}));
  EXPECT_EQ(count(0, 7, 5), (std::vector<double>{4, 2, 1, 5}));
  EXPECT_EQ(count(1, 8, 0), (std::vector<double>{1, 2, 4, 1}));
  EXPECT_EQ(count(3, 14, 1), (std::vector<double>{1, 4, 8, 1, 1}));
  EXPECT_EQ(count(8, 8, 0), (std::vector<double>{8}));
  EXPECT_LE(count(12345, 100'000, 0).size(), 34u);
}

TEST(TreePart, DoesNotSeeHowItIsFed) {
  std::mt19937_64 random(3);
  const auto x = numbers(5 * 4096 + 77, random);
  const std::vector<double> wide(x.begin(), x.end());
  tree_part whole(2 * 4096);
  whole.add_squares(view_of(x));
  tree_part parts(2 * 4096);
  for (std::size_t at = 0; at < x.size();) {
    const std::size_t n = std::min<std::size_t>(random() % 3000, x.size() - at);
    parts.add_squares(std::span(wide).subspan(at, n));
    at += n;
  }
  EXPECT_EQ(parts.subtrees(), whole.subtrees());
  tree_part chunks(2 * 4096);
  const auto inputs = squares(x);
  for (int c = 0; c < 5; ++c) {
    const double partial_sum =
        level_by_level({inputs.begin() + c * 4096, inputs.begin() + (c + 1) * 4096});
    chunks.add_chunks({&partial_sum, 1});
  }
  chunks.add(std::span(inputs).subspan(5 * 4096));
  EXPECT_EQ(chunks.subtrees(), whole.subtrees());
}

TEST(TreePart, AppendsSubtreesByTheirValues) {
  std::mt19937_64 random(9);
  const auto x = numbers(29 * 4096 + 50, random);
  const auto inputs = squares(x);
  tree_part whole(4 * 4096);
  whole.add(inputs);
  tree_part subtrees(4 * 4096);
  std::size_t at = 0;
  for (const std::size_t chunks : {4u, 4u, 1u, 1u, 2u, 16u, 1u}) {
    const std::size_t end = at + chunks * 4096;
    subtrees.add_subtree(chunks, level_by_level({inputs.data() + at, inputs.data() + end}));
    at = end;
  }
  subtrees.add(std::span(inputs).subspan(at));
  EXPECT_EQ(subtrees.count(), whole.count());
  EXPECT_EQ(subtrees.subtrees(), whole.subtrees());
}

TEST(TreePart, Refuses) {
  EXPECT_THROW(tree_part(1), invalid_argument);
  EXPECT_THROW(tree_part(4095), invalid_argument);
  EXPECT_THROW(tree_part(std::uint64_t{1} << 62), invalid_argument);
  tree_part part(4096);
  const double partial_sum = 1;
  part.add({&partial_sum, 1});
  EXPECT_THROW(part.add_chunks({&partial_sum, 1}), invalid_argument);
  EXPECT_THROW(part.add_subtree(1, 1.0), invalid_argument);  // the last chunk is not full
  EXPECT_THROW(tree_part(4096).add_subtree(2, 1.0), invalid_argument);
  EXPECT_THROW(tree_part(4096).add_subtree(0, 1.0), invalid_argument);
  EXPECT_THROW(tree_part(0).add_subtree(3, 1.0), invalid_argument);
  EXPECT_THROW(tree_part(0).add_subtree(std::uint64_t{1} << 50, 1.0), invalid_argument);
  std::vector<float> x(4);
  EXPECT_THROW(part.add_squares(on_device(view_of(x))), invalid_argument);
  EXPECT_EQ(part.count(), 1u);
}

TEST(SumShards, FormatsAndStrides) {
  std::vector<fp16> half;
  for (std::uint32_t code = 0; code < 0x7C00; ++code) {
    half.push_back(fp16::from_bits(static_cast<std::uint16_t>(code)));
  }
  std::vector<double> inputs;
  for (const fp16 h : half) {
    inputs.push_back(static_cast<double>(static_cast<float>(h)) * static_cast<float>(h));
  }
  single_rank ranks;
  tree_part part;
  part.add_squares(view_of(half));
  EXPECT_EQ(bits(sum_shards(ranks, {&part, 1}).total), bits(level_by_level(inputs)));
  // Every second element of rows 10 apart, read in the order (row, column).
  matrix_view strided = view_of(half.data(), 2, 5, 10);
  strided.col_stride = 2;
  tree_part some;
  some.add_squares(strided);
  std::vector<double> chosen;
  for (std::size_t r = 0; r < 2; ++r) {
    for (std::size_t c = 0; c < 5; ++c) chosen.push_back(inputs[r * 10 + c * 2]);
  }
  EXPECT_EQ(bits(sum_shards(ranks, {&some, 1}).total), bits(level_by_level(chosen)));
}

/// The message of the rank_error that every rank must throw alike.
std::string refusal(int n, const auto& parts_of_rank) {
  std::vector<std::string> messages(static_cast<std::size_t>(n));
  testkit::simulate_ranks(n, [&](communicator& ranks) {
    const std::vector<tree_part> parts = parts_of_rank(ranks.rank());
    messages[static_cast<std::size_t>(ranks.rank())] =
        support::refusal_of<rank_error>([&] { sum_shards(ranks, parts); });
  });
  for (const std::string& m : messages) EXPECT_EQ(m, messages[0]);
  return messages[0];
}

tree_part ones(std::uint64_t first, std::size_t count) {
  tree_part part(first);
  part.add(std::vector<double>(count, 1.0));
  return part;
}

TEST(SumShards, ALoneLeafKeepsItsSign) {
  single_rank ranks;
  tree_part part;
  const double zero = -0.0;
  part.add({&zero, 1});
  const sharded_sums sums = sum_shards(ranks, {&part, 1});
  EXPECT_EQ(bits(sums.of_tensors[0]), bits(-0.0));
  EXPECT_EQ(bits(sums.total), bits(-0.0));
}

TEST(SumShards, PartsThatDoNotFitAreNamedOnEveryRank) {
  EXPECT_EQ(refusal(3,
                    [](int r) {
                      const auto first = static_cast<std::uint64_t>(r == 2 ? 1 : r) * 4096;
                      return std::vector{tree_part(), ones(first, 4096)};
                    }),
            "sum_shards(): tensor 1: rank 1 holds inputs [4096, 8192) and rank 2 holds inputs "
            "[4096, 8192), which overlap");
  EXPECT_EQ(refusal(2, [](int r) { return std::vector{ones(r == 0 ? 0 : 8192, 5000)}; }),
            "sum_shards(): tensor 0: no rank holds inputs [5000, 8192), where rank 1 holds inputs "
            "[8192, 13192)");
  EXPECT_EQ(
      refusal(2, [](int r) { return std::vector<tree_part>(r == 0 ? 4 : 3); }),
      "sum_shards(): the ranks' lists have between 3 and 4 tensors; each must list all, those "
      "without elements of its own too");
  EXPECT_EQ(refusal(2, [](int) { return std::vector<tree_part>(); }), "");
}

TEST(SumShards, SendsFewNodes) {
  // 2^15 chunks on 8 ranks: one subtree each where the shares are powers of two, else up to 2 for
  // each doubling.
  const std::uint64_t chunks = 1 << 15;
  for (const std::uint64_t shift : {0u, 1u}) {
    const auto calls = testkit::simulate_ranks(8, [&](communicator& ranks) {
      const auto r = static_cast<std::uint64_t>(ranks.rank());
      const std::uint64_t begin = r == 0 ? 0 : r * chunks / 8 + shift;
      const std::uint64_t end = r == 7 ? chunks : (r + 1) * chunks / 8 + shift;
      tree_part part(begin * 4096);
      part.add_chunks(std::vector<double>(end - begin, 1.0));
      const sharded_sums sums = sum_shards(ranks, {&part, 1});
      EXPECT_EQ(sums.total, static_cast<double>(chunks));
    });
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_EQ(calls[0].bytes, 16u);
    EXPECT_LE(calls[1].bytes, shift == 0 ? 24u : 16u + 8u * 2u * 12u);
  }
}

}  // namespace
}  // namespace samebits
