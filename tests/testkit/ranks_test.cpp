// Tests of the simulated ranks: results of the operations, and errors, instead of waiting, for
// calls that do not match.
#include "samebits/testkit/ranks.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "samebits/error.hpp"
#include "support/refusal.hpp"

namespace samebits::testkit {
namespace {

std::vector<std::byte> bytes_of(int rank, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(rank * 16 + static_cast<int>(i));
  }
  return bytes;
}

class PlayRanks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Counts, PlayRanks, ::testing::Values(1, 2, 3, 8));

TEST_P(PlayRanks, RunsEachRankOnce) {
  std::vector<int> runs(static_cast<std::size_t>(GetParam()));
  const auto calls = simulate_ranks(GetParam(), [&](communicator& ranks) {
    ++runs[static_cast<std::size_t>(ranks.rank())];
    EXPECT_EQ(ranks.size(), GetParam());
    EXPECT_EQ(ranks.space(), memory_space::host);
  });
  EXPECT_EQ(runs, std::vector<int>(runs.size(), 1));
  EXPECT_TRUE(calls.empty());
}

TEST_P(PlayRanks, MaximaAreOfUnsignedWords) {
  const auto n = static_cast<std::uint32_t>(GetParam());
  const auto calls = simulate_ranks(GetParam(), [&](communicator& ranks) {
    const auto rank = static_cast<std::uint32_t>(ranks.rank());
    // 0x80000000 is the max as an unsigned word, but the min as a signed one.
    std::vector<std::uint32_t> words = {rank, n - rank, rank == 0 ? 0x80000000u : 0x7FFFFFFFu};
    ranks.all_reduce_max(words);
    EXPECT_EQ(words, (std::vector<std::uint32_t>{n - 1, n, 0x80000000u}));
  });
  EXPECT_EQ(calls, (std::vector<rank_call>{{rank_operation::all_reduce_max, 12}}));
}

TEST_P(PlayRanks, GatherKeepsTheOrderOfRanks) {
  simulate_ranks(GetParam(), [&](communicator& ranks) {
    const auto sent = bytes_of(ranks.rank(), 5);
    std::vector<std::byte> received(5 * static_cast<std::size_t>(ranks.size()));
    ranks.all_gather(sent, received);
    for (int r = 0; r < ranks.size(); ++r) {
      const auto part = std::span(received).subspan(static_cast<std::size_t>(r) * 5, 5);
      EXPECT_EQ(std::vector(part.begin(), part.end()), bytes_of(r, 5));
    }
  });
}

TEST_P(PlayRanks, ExchangeTransposesBlocks) {
  simulate_ranks(GetParam(), [&](communicator& ranks) {
    const auto n = static_cast<std::size_t>(ranks.size());
    const auto mine = static_cast<std::size_t>(ranks.rank());
    const auto sent = bytes_of(ranks.rank(), 2 * n);
    std::vector<std::byte> received(2 * n);
    ranks.all_to_all(sent, received);
    for (std::size_t r = 0; r < n; ++r) {
      const auto theirs = bytes_of(static_cast<int>(r), 2 * n);
      EXPECT_EQ(received[2 * r], theirs[2 * mine]);
      EXPECT_EQ(received[2 * r + 1], theirs[2 * mine + 1]);
    }
  });
}

TEST(PlayRanksCalls, AreReportedInOrder) {
  const auto calls = simulate_ranks(3, [](communicator& ranks) {
    std::vector<std::byte> sent(6), received(6), gathered(18);
    for (int i = 0; i < 100; ++i) ranks.all_to_all(sent, received);
    ranks.all_gather(sent, gathered);
  });
  ASSERT_EQ(calls.size(), 101u);
  EXPECT_EQ(calls[99], (rank_call{rank_operation::all_to_all, 6}));
  EXPECT_EQ(calls[100], (rank_call{rank_operation::all_gather, 6}));
}

std::string difference(int count, const std::function<void(communicator&)>& body) {
  return support::refusal_of<rank_calls_differ>([&] { simulate_ranks(count, body); });
}

TEST(PlayRanksCalls, OfOtherSizesAreNamed) {
  EXPECT_EQ(difference(2,
                       [](communicator& ranks) {
                         std::vector<std::uint32_t> words(ranks.rank() == 1 ? 3 : 2);
                         ranks.all_reduce_max(words);
                       }),
            "the ranks' calls differ at operation 0: rank 0 all_reduce_max of 8 bytes, rank 1 "
            "all_reduce_max of 12 bytes");
}

TEST(PlayRanksCalls, OfAnotherKindAreNamed) {
  EXPECT_EQ(difference(2,
                       [](communicator& ranks) {
                         std::vector<std::byte> sent(4), received(8);
                         std::vector<std::uint32_t> words(1);
                         ranks.all_reduce_max(words);
                         if (ranks.rank() == 0) ranks.all_reduce_max(words);
                         ranks.all_gather(sent, received);
                       }),
            "the ranks' calls differ at operation 1: rank 0 all_reduce_max of 4 bytes, rank 1 "
            "all_gather of 4 bytes");
}

TEST(PlayRanksCalls, ThatNeverComeAreNamed) {
  EXPECT_EQ(difference(3,
                       [](communicator& ranks) {
                         std::vector<std::uint32_t> words(1);
                         if (ranks.rank() != 1) ranks.all_reduce_max(words);
                       }),
            "the ranks' calls differ at operation 0: rank 0 all_reduce_max of 4 bytes, rank 1 has "
            "returned, rank 2 all_reduce_max of 4 bytes");
}

TEST(PlayRanksCalls, AnExceptionEndsAllAndIsThrown) {
  const auto body = [](communicator& ranks) {
    std::vector<std::uint32_t> words(1);
    if (ranks.rank() == 2) throw std::runtime_error("rank 2 failed");
    for (;;) ranks.all_reduce_max(words);
  };
  EXPECT_EQ(support::refusal_of<std::runtime_error>([&] { simulate_ranks(4, body); }),
            "rank 2 failed");
}

TEST(PlayRanksCalls, BuffersOfWrongSizesAreRefused) {
  std::vector<std::byte> three(3), four(4);
  EXPECT_THROW(simulate_ranks(2, [&](communicator& r) { r.all_gather(four, three); }),
               invalid_argument);
  EXPECT_THROW(simulate_ranks(2, [&](communicator& r) { r.all_to_all(four, three); }),
               invalid_argument);
  std::vector<std::byte> other(3);
  EXPECT_THROW(simulate_ranks(2, [&](communicator& r) { r.all_to_all(three, other); }),
               invalid_argument);
  EXPECT_THROW(simulate_ranks(0, [](communicator&) {}), invalid_argument);
  EXPECT_THROW(simulate_ranks(1025, [](communicator&) {}), invalid_argument);
}

TEST(SingleRank, CopiesWhatItSends) {
  single_rank ranks;
  EXPECT_EQ(ranks.rank(), 0);
  EXPECT_EQ(ranks.size(), 1);
  const auto sent = bytes_of(3, 7);
  std::vector<std::byte> received(7);
  ranks.all_gather(sent, received);
  EXPECT_EQ(received, sent);
  std::vector<std::byte> again(7);
  ranks.all_to_all(sent, again);
  EXPECT_EQ(again, sent);
  ranks.all_gather({}, {});
}

}  // namespace
}  // namespace samebits::testkit
