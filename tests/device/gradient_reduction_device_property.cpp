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
      scaler.observe({.nonfinite = ranks.rank() == n - 1,
                      .loss_nonfinite = ranks.rank() == 0,
                      .amax = 0x3F800000u + static_cast<std::uint32_t>(ranks.rank())});
      const rank_observation agreed = scaler.agree(ranks);
      EXPECT_TRUE(agreed.seen.nonfinite && agreed.seen.loss_nonfinite);
      EXPECT_EQ(agreed.seen.amax, 0x3F800000u + static_cast<std::uint32_t>(n - 1));
      EXPECT_EQ(agreed.bad_rank, 0);
      EXPECT_FALSE(scaler.step([] {}));
      scaler.update();
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ReductionOnDevice, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
