// Functions of tensor lists: every function, rule and gradient against the calls on single
// matrices, which conformance.evaluate and conformance.exact judge; in place; refused arguments.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "samebits/error.hpp"
#include "samebits/evaluate.hpp"
#include "samebits/types.hpp"
#include "support/backends.hpp"
#include "support/function_cases.hpp"
#include "support/test_list.hpp"

namespace samebits {
namespace {

using support::function_case;
using support::list_content;
using support::placed_list;

/// 7 tensors of up to 1500 elements.
placed_list list_of(const std::vector<format_id>& formats, list_content content,
                    std::uint64_t seed) {
  return placed_list({7, 1500, formats, content, seed});
}

/// The call on each tensor alone, on the simplest backend.
void run_each(const function_case& c, const tensor_list& grad, const tensor_list& in,
              const tensor_list& out) {
  function_case one = c;
  for (std::size_t i = 0; i < out.size(); ++i) {
    one.options.random.stream = c.options.random.stream + i;
    support::run_function<const_matrix_view, matrix_view>(one, grad[i].view, in[i].view,
                                                          out[i].view, {"reference", 1});
  }
}

class EvaluateListSuite : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] executor where() const { return {GetParam(), 3}; }
};

TEST_P(EvaluateListSuite, HasTheBitsOfTheCallsOnItsTensors) {
  std::uint64_t seed = 0;
  for (const function_case& c : support::function_cases()) {
    ++seed;
    placed_list in = list_of(c.formats, list_content::any_bits, seed);
    placed_list grad = list_of(c.formats, list_content::ordinary, seed);
    placed_list expected = list_of(c.results, list_content::small, seed);
    placed_list got = expected;
    run_each(c, grad.listed(), in.listed(), expected.listed());
    support::run_function(c, grad.listed(), in.listed(), got.listed(), where());
    ASSERT_EQ(got.memory, expected.memory) << text_of(c);
  }
}

TEST_P(EvaluateListSuite, WritesInPlace) {
  std::uint64_t seed = 1000;
  for (const function_case& c : support::function_cases()) {
    if (c.options.rounding != rounding::nearest_even) continue;
    ++seed;
    placed_list in = list_of(c.formats, list_content::ordinary, seed);
    placed_list grad = list_of(c.formats, list_content::any_bits, seed);
    placed_list over_in = in;
    placed_list over_grad = grad;
    placed_list expected = in;
    run_each(c, grad.listed(), in.listed(), expected.listed());
    const tensor_list x = over_in.listed();
    support::run_function(c, grad.listed(), x, x, where());
    ASSERT_EQ(over_in.memory, expected.memory) << text_of(c);
    if (!c.gradient) continue;
    expected = grad;
    run_each(c, grad.listed(), in.listed(), expected.listed());
    support::run_function(c, over_grad.listed(), in.listed(), over_grad.listed(), where());
    ASSERT_EQ(over_grad.memory, expected.memory) << text_of(c);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, EvaluateListSuite,
                         ::testing::ValuesIn(support::supported_backends()),
                         [](const auto& backend) { return backend.param; });

class EvaluateListArguments : public ::testing::Test {
 protected:
  template <class Error>
  void expect_refused(const std::string& expected) {
    try {
      evaluate(f_, in_, out_, options_, where_);
      ADD_FAILURE() << "nothing was refused; expected: " << expected;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(expected), std::string::npos) << e.what();
    }
    for (const std::vector<float>* results : {&c_, &d_}) {
      for (const float y : *results) ASSERT_EQ(y, 42.0f) << "something was written";
    }
  }

  std::vector<float> a_ = {0.5f, 0.5f}, b_ = std::vector<float>(3, 0.5f);
  std::vector<float> c_ = {42, 42}, d_ = std::vector<float>(3, 42.0f);
  std::vector<bf16> e_ = std::vector<bf16>(3);
  function f_ = function::exp;
  tensor_list in_{view_of(a_), view_of(b_)};
  tensor_list out_{view_of(c_), view_of(d_)};
  evaluate_options options_;
  executor where_;
};

TEST_F(EvaluateListArguments, TheUnspoiledCallWorks) {
  evaluate(f_, in_, out_);
  EXPECT_EQ(c_, (std::vector<float>(2, 0x1.a61298p+0f)));
  EXPECT_EQ(d_, (std::vector<float>(3, 0x1.a61298p+0f)));
}
TEST_F(EvaluateListArguments, ListsOfViews) {
  evaluate(f_, {view_of(a_), view_of(b_)}, {view_of(c_), view_of(d_)});
  EXPECT_EQ(d_, (std::vector<float>(3, 0x1.a61298p+0f)));
}
TEST_F(EvaluateListArguments, Functions) {
  f_ = static_cast<function>(enum_count<function>);
  expect_refused<invalid_argument>("f: ");
  f_ = function::sin;
  expect_refused<unsupported>("rule exact has no sin of fp32 numbers");
  f_ = function::pow;
  options_.rule = function_rule::torch_2_11;
  expect_refused<invalid_argument>("parameter: pow needs its exponent");
}
TEST_F(EvaluateListArguments, OptionsOfAnEmptyList) {
  const tensor_list none;
  evaluate(f_, none, none);
  EXPECT_THROW(evaluate(f_, none, none, {.parameter = 1.0}), invalid_argument);
  EXPECT_THROW(evaluate(f_, none, none, {.rounding = static_cast<rounding>(99)}), invalid_argument);
  EXPECT_THROW(evaluate(f_, none, none, {}, {"nonsense"}), invalid_argument);
}
TEST_F(EvaluateListArguments, Lengths) {
  in_ = tensor_list(view_of(a_));
  expect_refused<invalid_argument>("out: must have as many tensors as in, 1, got 2");
}
TEST_F(EvaluateListArguments, Shapes) {
  in_ = tensor_list{view_of(a_), view_of(b_.data(), 3, 1)};
  expect_refused<invalid_argument>("out[1]: shape must be that of in[1], [3, 1], got [1, 3]");
}
TEST_F(EvaluateListArguments, FormatsOfAnOperand) {
  in_ = tensor_list{view_of(a_), view_of_codes(format_id::e4m3, b_.data(), 1, 3)};
  expect_refused<invalid_argument>("in[1]: format must be fp32, fp16 or bf16, got e4m3");
}
TEST_F(EvaluateListArguments, OtherRulesKeepTheFormat) {
  in_ = tensor_list{view_of(a_), view_of(e_)};
  options_.rule = function_rule::torch_2_11;
  expect_refused<invalid_argument>("in[1]: format must be that of out[1], fp32, got bf16");
}
TEST_F(EvaluateListArguments, ALaterTensorOfAFormatThatTheRuleLacks) {
  in_ = tensor_list{view_of(a_), view_of(e_)};
  out_ = tensor_list{view_of(c_), view_of(e_)};
  options_.rule = function_rule::cuda_13_0;
  expect_refused<unsupported>("rule cuda_13_0 has no exp of bf16 numbers");
}
TEST_F(EvaluateListArguments, StochasticRoundingIntoALaterTensor) {
  out_ = tensor_list{view_of(e_.data(), 1, 2), view_of(d_)};
  options_.rounding = rounding::stochastic;
  expect_refused<unsupported>("options.rounding: rule exact rounds into fp32 to nearest even");
}
TEST_F(EvaluateListArguments, ResultsOverAnotherTensor) {
  std::vector<float> x(6, 42.0f);
  in_ = tensor_list{view_of(x.data(), 1, 3), view_of(x.data() + 3, 1, 3)};
  out_ = tensor_list{view_of(x.data() + 3, 1, 3), view_of(x.data(), 1, 3)};
  expect_refused<invalid_argument>("out[1]: overlaps in[0]");
  EXPECT_EQ(x, std::vector<float>(6, 42.0f));
  in_ = tensor_list(view_of(x.data(), 1, 5));
  out_ = tensor_list(view_of(x.data() + 1, 1, 5));
  expect_refused<invalid_argument>("out[0]: overlaps in[0]");
  EXPECT_EQ(x, std::vector<float>(6, 42.0f));
}
TEST_F(EvaluateListArguments, GradientsAreCheckedToo) {
  const auto refused = [&](const tensor_list& grad, const evaluate_options& options) {
    EXPECT_THROW(evaluate_gradient(function::silu, grad, in_, out_, options), invalid_argument);
    EXPECT_EQ(c_, (std::vector<float>{42, 42}));
  };
  refused(tensor_list(view_of(a_)), {});
  refused({view_of(a_), view_of_codes(format_id::e4m3, b_.data(), 1, 3)}, {});
  refused({view_of(a_), view_of(e_)}, {.rule = function_rule::torch_2_11});
  refused({view_of(a_), view_of(c_.data(), 1, 2)}, {});
  EXPECT_THROW(evaluate_gradient(function::exp, in_, in_, out_), unsupported);
}
TEST_F(EvaluateListArguments, Backends) {
  where_ = {"nonsense"};
  expect_refused<invalid_argument>("backend 'nonsense' is unknown");
  where_ = {"", -1};
  expect_refused<invalid_argument>("threads");
}

}  // namespace
}  // namespace samebits
