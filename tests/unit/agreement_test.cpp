// agree(): what n ranks saw together, against a merge in words of its own, for patterns of all
// kinds.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "numerics/loss_scale/agreement.hpp"
#include "samebits/error.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/testkit/ranks.hpp"

namespace samebits {
namespace {

bool same(const rank_observation& a, const rank_observation& b) {
  return a.seen.nonfinite == b.seen.nonfinite && a.seen.loss_nonfinite == b.seen.loss_nonfinite &&
         a.seen.unscaled_nonfinite == b.seen.unscaled_nonfinite && a.seen.amax == b.seen.amax &&
         a.first_bad == b.first_bad && a.bad_rank == b.bad_rank;
}

std::string text_of(const rank_observation& o) {
  return std::to_string(o.seen.nonfinite) + std::to_string(o.seen.loss_nonfinite) +
         std::to_string(o.seen.unscaled_nonfinite) + " amax " + std::to_string(o.seen.amax) +
         " first_bad " + std::to_string(o.first_bad) + " bad_rank " + std::to_string(o.bad_rank);
}

/// By classes of float, in place of bit patterns.
rank_observation merged(const std::vector<rank_observation>& seen) {
  rank_observation all;
  bool unknown = false;
  bool nan = false;
  float largest = 0;
  std::int64_t lossy = -1;
  for (std::size_t r = 0; r < seen.size(); ++r) {
    const step_observation& s = seen[r].seen;
    const float amax = std::bit_cast<float>(s.amax & 0x7FFFFFFFu);
    const bool known = s.amax != amax_unknown;
    const bool bad = s.nonfinite || (known && !std::isfinite(amax));
    unknown = unknown || !known;
    nan = nan || std::isnan(amax);
    if (!std::isnan(amax)) largest = std::fmax(largest, amax);
    all.seen.nonfinite |= bad;
    all.seen.loss_nonfinite |= s.loss_nonfinite;
    all.seen.unscaled_nonfinite |= s.unscaled_nonfinite;
    if (seen[r].first_bad >= 0 && (all.first_bad < 0 || seen[r].first_bad < all.first_bad)) {
      all.first_bad = seen[r].first_bad;
    }
    const bool anything = bad || s.unscaled_nonfinite || seen[r].first_bad >= 0;
    if (anything && all.bad_rank < 0) all.bad_rank = static_cast<std::int64_t>(r);
    if (s.loss_nonfinite && lossy < 0) lossy = static_cast<std::int64_t>(r);
  }
  if (lossy >= 0) all.bad_rank = lossy;
  all.seen.amax = unknown ? amax_unknown
                  : nan   ? 0x7FFFFFFFu
                          : std::bit_cast<std::uint32_t>(largest);
  return all;
}

rank_observation random_observation(std::mt19937_64& random) {
  static constexpr std::uint32_t specials[] = {0,          0x80000000, 1,          0x80000001,
                                               0x007FFFFF, 0x3F800000, 0x7F7FFFFF, 0xFF7FFFFF,
                                               0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000,
                                               0x7FFFFFFF, 0xFFC00000, 0xFFFFFFFE, amax_unknown};
  rank_observation o;
  o.seen.nonfinite = random() % 8 == 0;
  o.seen.loss_nonfinite = random() % 8 == 0;
  o.seen.unscaled_nonfinite = random() % 8 == 0;
  o.seen.amax = random() % 2 == 0 ? specials[random() % 16] : static_cast<std::uint32_t>(random());
  if (random() % 3 == 0) o.first_bad = static_cast<std::int64_t>(random() >> (random() % 33 + 31));
  o.bad_rank = static_cast<std::int64_t>(random() % 9) - 1;  // not read
  return o;
}

TEST(Agree, IsWhatAllSawOnEveryRank) {
  std::mt19937_64 random(20);
  for (const int n : {1, 2, 3, 8}) {
    const int rounds = 2000;
    std::vector<std::vector<rank_observation>> seen(rounds);
    for (auto& round : seen) {
      for (int r = 0; r < n; ++r) round.push_back(random_observation(random));
    }
    const auto calls = testkit::simulate_ranks(n, [&](communicator& ranks) {
      for (const auto& round : seen) {
        const auto got = agree(ranks, round[static_cast<std::size_t>(ranks.rank())]);
        rank_observation expected = merged(round);
        expected.first_bad = std::min<std::int64_t>(expected.first_bad, 0xFFFFFFFE);
        EXPECT_TRUE(same(got, expected))
            << "got " << text_of(got) << "\nexpected " << text_of(expected);
      }
    });
    // One packed message each.
    const testkit::rank_call message = {testkit::rank_operation::all_reduce_max, 32};
    EXPECT_EQ(calls, std::vector<testkit::rank_call>(rounds, message));
  }
}

TEST(Agree, PositionsSurviveTheWayAsWords) {
  using numerics::position_of;
  using numerics::position_word;
  for (const std::int64_t p : {std::int64_t{0}, std::int64_t{1}, std::int64_t{0x7FFFFFFF},
                               std::int64_t{0x80000000}, std::int64_t{0xFFFFFFFE}}) {
    EXPECT_EQ(position_of(position_word(p)), p);
    EXPECT_LT(position_word(p + 1), position_word(p) + (p == 0xFFFFFFFE ? 1u : 0u));
  }
  EXPECT_EQ(position_of(position_word(-1)), -1);
  EXPECT_EQ(position_of(position_word(std::numeric_limits<std::int64_t>::max())), 0xFFFFFFFE);
}

/// As the ranks of a GPU program would be.
class device_ranks final : public communicator {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  [[nodiscard]] memory_space space() const override { return memory_space::device; }
  void all_reduce_max(std::span<std::uint32_t>) override { ADD_FAILURE() << "called"; }
  void all_gather(std::span<const std::byte>, std::span<std::byte>) override {}
  void all_to_all(std::span<const std::byte>, std::span<std::byte>) override {}
};

TEST(Agree, RefusesDeviceMemory) {
  device_ranks ranks;
  EXPECT_THROW(agree(ranks, {}), unsupported);
}

static_assert(numerics::observation_of(
                  numerics::message_of({.seen = {.amax = 0xFF800000u}, .first_bad = 3}, 5, 9))
                  .bad_rank == 5);
// The last rank that a word can name stands for all beyond it.
static_assert(numerics::blamed_rank(numerics::blame_word(0x7FFFFFFD, false)) == 0x7FFFFFFD);
static_assert(numerics::blamed_rank(numerics::blame_word(0x7FFFFFFF, false)) == 0x7FFFFFFE);
static_assert(numerics::blamed_rank(numerics::blame_word(0x7FFFFFFF, true)) == 0x7FFFFFFE);
static_assert(numerics::states_agree(numerics::message_of({}, 0, 0xDEADBEEFu)));

}  // namespace
}  // namespace samebits
