// Every array operation on every backend of the host against the reference.
#include <gtest/gtest.h>

#include "operations/check.hpp"
#include "operations/operations.hpp"
#include "support/backends.hpp"

namespace samebits::support {
namespace {

void expect_on_hosts(const array_operation& op, int cases) {
  for (const std::string& backend : supported_backends()) {
    expect_as_reference(op, *host_target(backend), cases);
  }
}

TEST(Operations, Convert) { expect_on_hosts(convert_operation({}), 1000); }
TEST(Operations, Compute) { expect_on_hosts(compute_operation({}), 1000); }
TEST(Operations, Reduction) { expect_on_hosts(reduction_operation(), 1000); }
TEST(Operations, Quantize) { expect_on_hosts(quantize_operation(), 500); }
TEST(Operations, Dequantize) { expect_on_hosts(dequantize_operation(), 500); }
TEST(Operations, QuantizeList) { expect_on_hosts(quantize_list_operation(), 250); }
/// On hosts there is one implementation, which property.gradient_reduction compares with the oracle.
TEST(Operations, ReduceGradients) {
  expect_as_reference(gradient_reduction_operation(), *host_target("reference"), 100);
}
TEST(Operations, LossScaler) { expect_on_hosts(scaler_operation(), 500); }
TEST(Operations, ShardedLossScaler) { expect_on_hosts(sharded_scaler_operation(), 60); }

class ListOperations : public ::testing::TestWithParam<list_call> {};

TEST_P(ListOperations, IsTheReferences) { expect_on_hosts(list_operation(GetParam()), 500); }

INSTANTIATE_TEST_SUITE_P(, ListOperations,
                         ::testing::Values(list_call::inspect, list_call::l2norm,
                                           list_call::unscale, list_call::scale, list_call::clip,
                                           list_call::accumulate, list_call::axpby,
                                           list_call::cast),
                         [](const auto& tested) { return std::string(name(tested.param)); });

}  // namespace
}  // namespace samebits::support
