// reduce_gradients() on device memory: refusals; the small messages of the host between such ranks are
// staged. Any lists, communication dtypes and cuts: device.property_reducegradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda_backends.hpp"
#include "device/device_copy.hpp"
#include "device/device_ranks.hpp"
#include "samebits/distributed.hpp"
#include "samebits/samebits.hpp"
#include "samebits/testkit/ranks.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

class ReductionOnDevice : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { initialize(GetParam()); }

  device_streams streams_;
};

TEST_P(ReductionOnDevice, RefusalsReachEveryRank) {
  std::vector<std::uint16_t> codes(100);
  std::array<int, 3> thrown = {};
  simulate_device_ranks(streams_, 3, [&](communicator& ranks) {
    const guarded_copy copy(codes.data(), codes.size() * 2);
    check_cuda(cudaStreamSynchronize(nullptr), "gradients to the device");
    // Rank 1 hands in the host's.
    const matrix_view host = view_of_codes(format_id::bf16, codes.data(), 1, 100);
    const matrix_view views[] = {ranks.rank() == 1 ? host : copy.placed(host)};
    const auto mine = static_cast<std::size_t>(ranks.rank());
    try {
      reduce_gradients(ranks, views, {.backend = GetParam()});
    } catch (const rank_error&) {
      thrown[mine] = 1;
    } catch (const invalid_argument&) {
      thrown[mine] = 2;
    }
    const matrix_view other[] = {
        copy.placed(view_of_codes(format_id::bf16, codes.data(), 1, ranks.rank() == 2 ? 99 : 100))};
    EXPECT_THROW(reduce_gradients(ranks, other, {.backend = GetParam()}), rank_error);
    EXPECT_THROW(reduce_gradients(ranks, other, {.backend = "reference"}), invalid_argument);
  });
  EXPECT_EQ(thrown, (std::array<int, 3>{1, 2, 1}));
}

rank_observation random_observation(std::uint64_t seed, int rank) {
  std::mt19937_64 random(seed * 64 + static_cast<std::uint64_t>(rank));
  rank_observation o;
  o.seen.nonfinite = random() % 8 == 0;
  o.seen.loss_nonfinite = random() % 8 == 0;
  o.seen.unscaled_nonfinite = random() % 8 == 0;
  o.seen.amax = random() % 4 == 0 ? amax_unknown : static_cast<std::uint32_t>(random());
  o.first_bad = random() % 2 == 0 ? -1 : static_cast<std::int64_t>(random() % 100);
  return o;
}

TEST_P(ReductionOnDevice, MessagesOfTheHostAreStaged) {
  int different = 0;
  for (int n = 1; n <= max_device_ranks; ++n) {
    for (std::uint64_t seed = 0; seed < by_effort(20u, 2u); ++seed) {
      rank_observation expected;
      testkit::simulate_ranks(n, [&](communicator& ranks) {
        const auto all = agree(ranks, random_observation(seed, ranks.rank()));
        if (ranks.rank() == 0) expected = all;
      });
      simulate_device_ranks(streams_, n, [&](communicator& ranks) {
        const auto got = agree(ranks, random_observation(seed, ranks.rank()));
        EXPECT_EQ(got.seen.nonfinite, expected.seen.nonfinite);
        EXPECT_EQ(got.seen.loss_nonfinite, expected.seen.loss_nonfinite);
        EXPECT_EQ(got.seen.unscaled_nonfinite, expected.seen.unscaled_nonfinite);
        EXPECT_EQ(got.seen.amax, expected.seen.amax);
        EXPECT_EQ(got.first_bad, expected.first_bad);
        EXPECT_EQ(got.bad_rank, expected.bad_rank);
      });
      different += expected.bad_rank > 0 ? 1 : 0;
    }
  }
  if (!smallest_effort()) {
    EXPECT_GT(different, 5);
  }
}

TEST_P(ReductionOnDevice, ScalersAndShardsWorkOverDeviceMemory) {
  std::mt19937_64 random(3);
  std::vector<double> inputs(5 * chunk_inputs + 17);
  for (double& x : inputs) x = static_cast<double>(random() % 1000) * 0x1p-7 - 3.3;
  tree_sum whole;
  whole.add_squares(inputs);
  for (const int n : {1, 2, 3, 5}) {
    simulate_device_ranks(streams_, n, [&](communicator& ranks) {
      const std::size_t chunks = 6;
      const auto cut = [&](int rank) {
        const std::size_t at =
            chunks * static_cast<std::size_t>(rank) / static_cast<std::size_t>(n);
        return std::min(at * chunk_inputs, inputs.size());
      };
      tree_part part(cut(ranks.rank()));
      const std::span<const double> all(inputs);
      part.add_squares(all.subspan(cut(ranks.rank()), cut(ranks.rank() + 1) - cut(ranks.rank())));
      const sharded_sums sums = sum_shards(ranks, {&part, 1});
      EXPECT_EQ(std::bit_cast<std::uint64_t>(sums.of_tensors[0]),
                std::bit_cast<std::uint64_t>(whole.value()));
      loss_scaler scaler;
      scaler.observe({.nonfinite = ranks.rank() == n - 1, .amax = 0x3F800000u});
      EXPECT_EQ(scaler.agree(ranks).bad_rank, n - 1);
      EXPECT_FALSE(scaler.step([] {}));
      scaler.update();
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ReductionOnDevice, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
