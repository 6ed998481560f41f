// Functions of matrices, lists and rows against their definitions in numerics/, and rotary tables
// against laws, on every host backend. unit.cuda_functions, unit.torch_operators, unit.exact_functions
// and others judge the definitions.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

#include "engine/cases/operations.hpp"
#include "engine/suites/rapidcheck.hpp"
#include "numerics/hardware/torch_operators/fused_elements.hpp"

namespace samebits::support {
namespace {

TEST(Functions, EveryOne) { expect_on_hosts(every_evaluation(), 0); }
TEST(Functions, OfCodesInOrder) {
  for (const bool exact : {false, true}) {
    expect_on_hosts(evaluations_of_codes(format_id::bf16, exact, 1 << 11, 5, 31), 0);
    expect_on_hosts(evaluations_of_codes(format_id::fp32, exact, 1 << 11, 5, (1 << 21) - 1), 0);
  }
}
TEST(Functions, OfMatricesAndLists) { expect_on_hosts(evaluate_operation(), 1500); }

TEST(RowFunctions, EveryWidth) {
  expect_on_hosts(rows_of_every_width(), 0);
  expect_on_hosts(norms_of_every_width(), 0);
}
TEST(RowFunctions, OfAnyRows) { expect_on_hosts(row_operation(), 600); }

TEST(FusedOperators, OfAnyMatrices) { expect_on_hosts(fused_operation(), 2000); }
TEST(FusedOperators, GatedAndQuantized) { expect_on_hosts(gated_quantize_operation(), 1000); }
TEST(FusedOperators, Norms) { expect_on_hosts(norm_operation(), 1400); }
TEST(FusedOperators, NormsAndQuantized) { expect_on_hosts(norm_quantize_operation(), 1000); }

/// Random cases do not see a border that is off by a few of 2^24.
TEST(FusedOperators, BorderOfDropout) {
  const auto plan = [](float p) {
    return numerics::torch_2_11::dropout_plan(format_id::fp32, std::bit_cast<std::uint32_t>(p));
  };
  EXPECT_EQ(plan(0.0F).dropped, 0u);
  EXPECT_EQ(plan(0.5F).dropped, 1u << 23);
  EXPECT_EQ(plan(1.0F).dropped, 1u << 24);
  EXPECT_EQ(plan(0.75F).scale, std::bit_cast<std::uint32_t>(4.0F));
}

TEST(AxisReductions, OfAnyTensor) { expect_on_hosts(axis_operation(), 800); }
TEST(TrainingFunctions, OfAnyArguments) { expect_on_hosts(training_operation(), 700); }
TEST(Attention, OfAnyTensors) { expect_on_hosts(attention_operation(), 250); }

TEST(RotaryTables, OnEveryBackend) { expect_on_hosts(rotary_operation(), 300); }
TEST(RotaryTables, RowsAloneHaveTheBitsOfTheWholeAndSinIsOdd) {
  expect_as_reference(rotary_operation(), *opposite_rows(), 500);
}

}  // namespace
}  // namespace samebits::support
