// Functions of matrices, lists and rows against their definitions in numerics/, and rotary tables
// against laws, on every host backend. unit.cuda_functions, unit.torch_operators, unit.exact_functions
// and others judge the definitions.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

#include "engine/cases/attention.hpp"
#include "engine/cases/axes.hpp"
#include "engine/cases/evaluate.hpp"
#include "engine/cases/fused.hpp"
#include "engine/cases/fused_quantize.hpp"
#include "engine/cases/norms_of_sums.hpp"
#include "engine/cases/rotary.hpp"
#include "engine/cases/rows.hpp"
#include "engine/cases/training.hpp"
#include "engine/suites/rapidcheck.hpp"
#include "numerics/hardware/torch_operators/fused_elements.hpp"
#include "samebits/types.hpp"

namespace samebits::support {
namespace {

constexpr const char* definition = "the definition";

TEST(Functions, EveryOne) {
  expect_on_hosts(listed_operation("evaluate", evaluations(), every_evaluation(), 64), definition,
                  evaluate_by_definition, 0);
}
TEST(Functions, OfCodesInOrder) {
  for (const bool exact : {false, true}) {
    expect_on_hosts(evaluations_of_codes(format_id::bf16, exact, 1 << 11, 5, 31), definition,
                    evaluate_by_definition, 0);
    expect_on_hosts(evaluations_of_codes(format_id::fp32, exact, 1 << 11, 5, (1 << 21) - 1),
                    definition, evaluate_by_definition, 0);
  }
}
TEST(Functions, OfMatricesAndLists) {
  expect_on_hosts(evaluate_operation(), definition, evaluate_by_definition, 1500);
}

TEST(RowFunctions, EveryWidth) {
  expect_on_hosts(listed_operation("functions of rows", row_functions(), every_width(), 64),
                  definition, rows_by_definition, 0);
}
TEST(RowFunctions, OfAnyRows) {
  expect_on_hosts(make_operation("functions of rows", row_functions(), 256), definition,
                  rows_by_definition, 1000);
}

TEST(FusedOperators, OfAnyMatrices) {
  expect_on_hosts(make_operation("fused operators", fused_operators()), "PyTorch's operators",
                  fused_by_definition, 2000);
}

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
TEST(FusedOperators, GatedAndQuantized) {
  expect_on_hosts(make_operation("gated and quantized", gated_quantizations(), 256), "two calls",
                  gated_then_quantized, 1000);
}

TEST(FusedOperators, NormsAndQuantized) {
  expect_on_hosts(make_operation("norms and quantized", norm_quantizations(), 256),
                  "two or three calls", norm_then_quantized, 1000);
}

TEST(FusedOperators, NormsOfSums) {
  expect_on_hosts(make_operation("norms of sums", norms_of_sums(), 256), "PyTorch's operators",
                  norms_of_sums_by_definition, 1000);
}

TEST(AxisReductions, OfAnyTensor) {
  expect_on_hosts(make_operation("reductions over axes", axis_reductions(), 64), definition,
                  axes_by_definition, 800);
}

TEST(TrainingFunctions, OfAnyArguments) {
  expect_on_hosts(make_operation("training functions", training_functions(), 64), definition,
                  training_by_definition, 700);
}

TEST(Attention, OfAnyTensors) {
  expect_on_hosts(make_operation("attention", attentions(), 16), "the rule", attention_by_rule,
                  250);
}

TEST(RotaryTables, OnEveryBackend) {
  for (const std::string& backend : supported_backends()) {
    expect_as_reference(make_operation("rotary_table", rotary_tables()), *host_target(backend),
                        300);
  }
}

/// Each row by itself, at the opposite position: cos is even and sin is odd.
returned_values row_by_row_backward(const rotary_case& c, const call_site& site) {
  const executor where{"reference", 1};
  const std::uint64_t sign = std::uint64_t{1} << (spec_of(c.format).storage_bits - 1);
  for (std::int64_t row = 0; row < site.views[0].rows; ++row) {
    const std::int64_t p = c.positions[static_cast<std::size_t>(row)];
    const matrix_view cos = block_of(site.views[0], row, 1, 0, site.views[0].cols);
    const matrix_view sin = block_of(site.views[1], row, 1, 0, site.views[1].cols);
    fill_table(c, {&p, 1}, cos, sin, where);
    if (p == 0 || p == INT64_MIN) continue;
    std::vector<std::uint64_t> forward;
    for (std::int64_t col = 0; col < sin.cols; ++col) forward.push_back(code_at(sin, 0, col));
    const std::int64_t opposite = -p;
    fill_table(c, {&opposite, 1}, cos, sin, where);
    for (std::int64_t col = 0; col < sin.cols; ++col) {
      const std::uint64_t value = code_at(sin, 0, col);
      // The angle 0 has sin +0 at either sign, unless it is a binary32 number.
      const bool zero = (value & ~sign) == 0 && c.options.angle == rotary_angle::exact;
      const bool odd = value != canonical_nan(c.format) && !zero;
      put_code(sin, 0, col, odd ? value ^ sign : forward[static_cast<std::size_t>(col)]);
    }
  }
  return {};
}

TEST(RotaryTables, RowsAloneHaveTheBitsOfTheWholeAndSinIsOdd) {
  function_target<rotary_case> rows("opposite rows", row_by_row_backward);
  expect_as_reference(make_operation("rotary_table", rotary_tables()), rows, 500);
}

}  // namespace
}  // namespace samebits::support
