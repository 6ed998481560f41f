// Every array operation on every backend of the host against the reference.
#include <gtest/gtest.h>

#include "engine/cases/matmul.hpp"
#include "engine/cases/operations.hpp"
#include "engine/suites/rapidcheck.hpp"

namespace samebits::support {
namespace {

TEST(Operations, Convert) { expect_on_hosts(convert_operation({}), 1000); }
TEST(Operations, Compute) { expect_on_hosts(compute_operation({}), 1000); }
TEST(Operations, Reduction) { expect_on_hosts(reduction_operation(), 1000); }
TEST(Operations, Quantize) { expect_on_hosts(quantize_operation(), 500); }
TEST(Operations, Dequantize) { expect_on_hosts(dequantize_operation(), 500); }
TEST(Operations, Codebooks) { expect_on_hosts(codebook_operation(), 500); }
TEST(Operations, QuantizeList) { expect_on_hosts(quantize_list_operation(), 250); }
TEST(Operations, OptimizerStep) { expect_on_hosts(optimizer_operation(), 500); }
TEST(Operations, OfMuch) {
  expect_on_hosts(long_quantize_lists(), 0);
  expect_on_hosts(large_optimizer_steps(), 0);
}
TEST(Operations, StoreAndLoad) { expect_on_hosts(store_operation(), 500); }
/// On hosts there is one implementation, which engine.gradients_oracle compares with the oracle.
TEST(Operations, ReduceGradients) {
  expect_as_reference(gradient_reduction_operation(), *host_target("reference"), 100);
}
TEST(Operations, Matmul) {
  expect_on_hosts(matmul_operation({40, 80, 500}, random_kinds::all), 400);
  expect_on_hosts(matmul_operation({30, 70, 300}, random_kinds::tensor_cores), 1200);
}
TEST(Operations, LossScaler) {
  expect_on_hosts(scaler_operation(), 500);
  expect_on_hosts(long_scaler_operation(), 0);
}
TEST(Operations, ShardedLossScaler) {
  expect_on_hosts(sharded_scaler_operation(), 60);
  expect_on_hosts(large_shards_operation(), 0);
}

class ListOperations : public ::testing::TestWithParam<list_call> {};

TEST_P(ListOperations, IsTheReferences) { expect_on_hosts(list_operation(GetParam()), 500); }

TEST_P(ListOperations, OfManyAndOfLargeTensors) { expect_on_hosts(large_lists(GetParam()), 0); }

TEST(ListCasts, OfEveryCodeByEveryRule) { expect_on_hosts(casts_of_every_code(29), 0); }

INSTANTIATE_TEST_SUITE_P(, ListOperations, list_calls(), name_of_list_call);

}  // namespace
}  // namespace samebits::support
