// Every array operation on both CUDA backends against the reference on the host: 50 000 cases each
// by default, as many as RC_PARAMS="max_success=N" says otherwise. A failing case is shrunk.
#include <gtest/gtest.h>

#include <string>

#include "device/cuda_backends.hpp"
#include "device/device_target.hpp"
#include "operations/check.hpp"
#include "operations/operations.hpp"
#include "samebits/self_test.hpp"

namespace samebits::support {
namespace {

constexpr int most_cases = 50'000;

class DeviceProperty : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { initialize(GetParam()); }

  void expect_host_bits(const array_operation& op, int cases = most_cases) {
    device_target target{std::string(GetParam())};
    expect_as_reference(op, target, cases);
  }
};

TEST_P(DeviceProperty, Convert) { expect_host_bits(convert_operation(GetParam())); }
TEST_P(DeviceProperty, Compute) { expect_host_bits(compute_operation()); }
TEST_P(DeviceProperty, Reduction) { expect_host_bits(reduction_operation()); }
TEST_P(DeviceProperty, Quantize) { expect_host_bits(quantize_operation()); }
TEST_P(DeviceProperty, Dequantize) { expect_host_bits(dequantize_operation()); }
TEST_P(DeviceProperty, QuantizeList) { expect_host_bits(quantize_list_operation()); }
TEST_P(DeviceProperty, Inspect) { expect_host_bits(plan_operation(plan_call::inspect)); }
TEST_P(DeviceProperty, L2Norm) { expect_host_bits(plan_operation(plan_call::l2norm)); }
TEST_P(DeviceProperty, Unscale) { expect_host_bits(plan_operation(plan_call::unscale)); }
TEST_P(DeviceProperty, Scale) { expect_host_bits(plan_operation(plan_call::scale)); }
TEST_P(DeviceProperty, Clip) { expect_host_bits(plan_operation(plan_call::clip)); }
TEST_P(DeviceProperty, Accumulate) { expect_host_bits(plan_operation(plan_call::accumulate)); }
TEST_P(DeviceProperty, Axpby) { expect_host_bits(plan_operation(plan_call::axpby)); }
TEST_P(DeviceProperty, Cast) { expect_host_bits(plan_operation(plan_call::cast)); }

INSTANTIATE_TEST_SUITE_P(Backends, DeviceProperty, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
