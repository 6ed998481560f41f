// reduce_gradients() on device memory: refusals; the small messages of the host between such ranks are
// staged. Any lists, communication dtypes and cuts: device.property_reducegradients.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "device/device_test.hpp"
#include "samebits/distributed.hpp"
#include "samebits/samebits.hpp"

namespace samebits::support {
namespace {

class ReductionOnDevice : public DeviceTest {
 protected:
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

/// Host memory of ranks that exchange messages in device memory.
class staged_ranks final : public array_target {
 public:
  [[nodiscard]] std::string_view backend() const override { return "reference"; }
  void simulate_ranks(int count, const std::function<void(communicator&)>& body) const override {
    simulate_device_ranks(streams_, count, body);
  }

 private:
  device_streams streams_;
};

/// sum_shards(), agree() and decide() of hosts.
TEST(StagedMessages, ScalersAndShardsWorkOverDeviceMemory) {
  staged_ranks target;
  expect_as_reference(sharded_scaler_operation(), target, by_effort(1000, 20));
}

INSTANTIATE_TEST_SUITE_P(Backends, ReductionOnDevice, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
