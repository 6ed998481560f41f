// Shard layouts: what they say, and what every rank is told of shards that do not fit.
#include "samebits/distributed.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "backends/dispatch/access.hpp"
#include "backends/ranks/shard_layout.hpp"
#include "samebits/error.hpp"
#include "samebits/testkit/ranks.hpp"
#include "samebits/types.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

/// A rank's shards: begin and count of "weight" and of a tensor without name.
struct held {
  std::uint64_t first[2];
  std::int64_t count[2];
};

tensor_list list_of(const held& h, std::vector<std::vector<fp16>>& memory) {
  std::vector<list_tensor> tensors;
  for (const std::int64_t count : h.count) {
    memory.emplace_back(static_cast<std::size_t>(count));
    tensors.push_back({view_of(memory.back())});
  }
  tensors[0].name = "weight";
  return tensor_list(std::move(tensors));
}

shard_layout layout_of(communicator& ranks, const held& h) {
  std::vector<std::vector<fp16>> memory;
  return shard_layout(ranks, list_of(h, memory), h.first);
}

TEST(ShardLayout, SaysWhatTheRanksHold) {
  const held of[] = {{{8192, 0}, {4096, 0}}, {{0, 7}, {8192, 0}}, {{12288, 0}, {5, 100}}};
  const auto calls = testkit::simulate_ranks(3, [&](communicator& ranks) {
    const shard_layout layout = layout_of(ranks, of[ranks.rank()]);
    EXPECT_EQ(layout.rank(), ranks.rank());
    EXPECT_EQ(layout.ranks(), 3);
    ASSERT_EQ(layout.size(), 2u);
    EXPECT_EQ(layout.elements(0), 12293u);
    EXPECT_EQ(layout.elements(1), 100u);
    // Of "weight" rank 1 has [0, 2) chunks and the others one each; rank 2 has the other tensor.
    EXPECT_EQ(layout.message_bytes(), 32u + 8u * 2u);
  });
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].bytes, 12u);
  EXPECT_EQ(calls[1].bytes, 32u);
}

/// What a message holds besides its header: the most values that a rank sends.
std::size_t values_sent(const std::vector<held>& of) {
  std::size_t bytes = 0;
  testkit::simulate_ranks(static_cast<int>(of.size()), [&](communicator& ranks) {
    const shard_layout layout = layout_of(ranks, of[static_cast<std::size_t>(ranks.rank())]);
    if (ranks.rank() == 0) bytes = layout.message_bytes();
  });
  return (bytes - 32) / 8;
}

TEST(ShardLayout, SendsTheLargestNodes) {
  constexpr std::int64_t chunk = 4096;
  // a part that others follow: four chunks are one partial sum, three of them two
  EXPECT_EQ(values_sent({{{0, 0}, {4 * chunk, 0}}, {{4 * chunk, 0}, {1, 0}}}), 1u);
  EXPECT_EQ(values_sent({{{0, 0}, {3 * chunk, 0}}, {{3 * chunk, 0}, {1, 0}}}), 2u);
  // [1, 8) is 1, [2, 4) and [4, 8)
  EXPECT_EQ(values_sent({{{chunk, 0}, {7 * chunk, 0}}, {{0, 0}, {chunk, 0}}}), 3u);
  // what no rank has fills a slot up: 1000 chunks are one partial sum, 1025 are two
  EXPECT_EQ(values_sent({{{0, 0}, {1000 * chunk - 1, 0}}}), 1u);
  EXPECT_EQ(values_sent({{{0, 0}, {1024 * chunk, 0}}}), 1u);
  EXPECT_EQ(values_sent({{{0, 0}, {1024 * chunk + 1, 0}}}), 2u);
}

/// The fingerprint, which is the same on every rank.
std::uint32_t fingerprint_of(const std::vector<held>& of) {
  std::vector<std::uint32_t> prints(of.size());
  testkit::simulate_ranks(static_cast<int>(of.size()), [&](communicator& ranks) {
    const auto r = static_cast<std::size_t>(ranks.rank());
    prints[r] = backends::data_of(layout_of(ranks, of[r])).fingerprint;
  });
  for (const std::uint32_t p : prints) EXPECT_EQ(p, prints[0]);
  return prints[0];
}

TEST(ShardLayout, FingerprintsSayWhichRankHoldsWhat) {
  const std::uint32_t print = fingerprint_of({{{0, 0}, {8192, 5}}, {{8192, 0}, {4096, 0}}});
  EXPECT_NE(fingerprint_of({{{0, 0}, {4096, 5}}, {{4096, 0}, {8192, 0}}}), print);
  EXPECT_NE(fingerprint_of({{{8192, 0}, {4096, 0}}, {{0, 0}, {8192, 5}}}), print);
  EXPECT_NE(fingerprint_of({{{0, 0}, {8192, 5}}, {{8192, 0}, {4095, 0}}}), print);
  // where an empty shard would begin says nothing
  EXPECT_EQ(fingerprint_of({{{0, 0}, {8192, 5}}, {{8192, 4096}, {4096, 0}}}), print);
}

TEST(ShardLayout, RanksWithoutTensorsOrElements) {
  testkit::simulate_ranks(2, [](communicator& ranks) {
    const shard_layout none(ranks, tensor_list(), {});
    EXPECT_EQ(none.size(), 0u);
    EXPECT_EQ(none.message_bytes(), 32u);
    const shard_layout empty = layout_of(ranks, {{1, 2}, {0, 0}});
    EXPECT_EQ(empty.elements(0), 0u);
    EXPECT_EQ(empty.message_bytes(), 32u);
  });
}

/// What each rank throws.
std::vector<std::string> refusals(const std::vector<held>& of) {
  std::vector<std::string> messages(of.size());
  testkit::simulate_ranks(static_cast<int>(of.size()), [&](communicator& ranks) {
    const auto r = static_cast<std::size_t>(ranks.rank());
    try {
      layout_of(ranks, of[r]);
    } catch (const invalid_argument& error) {
      messages[r] = std::string("argument: ") + error.what();
    } catch (const rank_error& error) {
      messages[r] = error.what();
    }
  });
  return messages;
}

using texts = std::vector<std::string>;

TEST(ShardLayout, ShardsNotCutOnChunksAreRefusedByTheTensorsName) {
  EXPECT_EQ(refusals({{{0, 0}, {5000, 0}}, {{5000, 0}, {100, 0}}}),
            (texts{"shard_layout(): rank 1 refused its arguments; its own error says why",
                   "argument: shards[0] 'weight': a shard must begin at a chunk's first element, a "
                   "multiple of 4096 below 2^62 of its tensor, got first[0] = 5000"}));
  EXPECT_EQ(
      refusals({{{0, std::uint64_t{1} << 62}, {0, 1}}})[0],
      "argument: shards[1]: a shard must begin at a chunk's first element, a multiple of 4096 "
      "below 2^62 of its tensor, got first[1] = 4611686018427387904");
}

TEST(ShardLayout, GapsAndOverlapsAreNamedOnEveryRank) {
  const std::string overlap =
      "shard_layout(): shards[0] 'weight': rank 0 holds elements [0, 8192) and rank 1 holds "
      "elements "
      "[4096, 4196), which overlap";
  EXPECT_EQ(refusals({{{0, 0}, {8192, 0}}, {{4096, 0}, {100, 0}}}), (texts{overlap, overlap}));
  const std::string gap =
      "shard_layout(): shards[1]: no rank holds elements [5000, 8192), where rank 0 holds elements "
      "[8192, 8193)";
  EXPECT_EQ(refusals({{{0, 8192}, {0, 1}}, {{0, 0}, {0, 5000}}}), (texts{gap, gap}));
  const std::string copies =  // of one tensor, as tensor parallelism keeps them
      "shard_layout(): shards[0] 'weight': rank 0 holds elements [0, 10) and rank 1 holds elements "
      "[0, 10), which overlap";
  EXPECT_EQ(refusals({{{0, 0}, {10, 0}}, {{0, 0}, {10, 0}}}), (texts{copies, copies}));
}

TEST(ShardLayout, ListsOfOtherLengthsAreRefused) {
  testkit::simulate_ranks(2, [](communicator& ranks) {
    std::vector<std::vector<fp16>> memory;
    const tensor_list two = list_of({{0, 0}, {0, 0}}, memory);
    const std::uint64_t first[] = {0, 0};
    const auto refused = [&] {
      if (ranks.rank() == 0) return shard_layout(ranks, two, first);
      return shard_layout(ranks, tensor_list(), {});
    };
    EXPECT_EQ(support::refusal_of<rank_error>(refused),
              "shard_layout(): the ranks' lists have between 0 and 2 tensors; each must list "
              "all, those without elements of its own too");
  });
  single_rank alone;
  std::vector<std::vector<fp16>> memory;
  const tensor_list two = list_of({{0, 0}, {0, 0}}, memory);
  const std::uint64_t one[] = {0};
  EXPECT_THROW(shard_layout(alone, two, one), invalid_argument);
}

}  // namespace
}  // namespace samebits
