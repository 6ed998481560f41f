// Functions of rows: every host backend against the definition, row by row; and refused arguments.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "conformance/row_matrix.hpp"
#include "numerics/hardware/torch_operators/row_layer_norm.hpp"
#include "numerics/hardware/torch_operators/row_softmax.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "numerics/hardware/triton_functions/triton_softmax.hpp"
#include "samebits/error.hpp"
#include "samebits/row_functions.hpp"
#include "support/backends.hpp"

namespace samebits {
namespace {

using support::matrix, support::random_matrix, support::rows, support::words;
namespace torch = numerics::torch_2_11;

constexpr std::uint32_t epsilon = 0x3F000000;  // 1/2

words rounded(format_id format, words x) {
  for (std::uint32_t& word : x) word = torch::stored(format, word);
  return x;
}

class RowFunctionsSuite : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] executor where() const { return {GetParam(), 3}; }
};

constexpr format_id formats[] = {format_id::fp32, format_id::fp16, format_id::bf16};

TEST_P(RowFunctionsSuite, SoftmaxHasTheDefinitionsBits) {
  for (const format_id format : formats) {
    for (const std::int64_t cols : {1, 77, 1031, 10007}) {
      matrix x = random_matrix(format, cols, 2, 1), y(format, cols, 1), z(format, cols, 3);
      const softmax_options options{.rule = function_rule::torch_2_11, .offset = 5};
      softmax(x.view(), y.view(), options, where());
      log_softmax(x.view(), z.view(), options, where());
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t shift = (5 + r * cols) % torch::vector_of(format);
        const torch::row_order order = torch::softmax_order(format, cols, shift);
        words expected = x.row(r), logarithm = x.row(r);
        torch::softmax_row(order, expected.data(), cols);
        torch::log_softmax_row(order, logarithm.data(), cols);
        ASSERT_EQ(y.row(r), rounded(format, expected)) << name(format) << cols << " " << r;
        ASSERT_EQ(z.row(r), rounded(format, logarithm)) << name(format) << cols << " " << r;
      }
    }
  }
}

TEST_P(RowFunctionsSuite, GradientsOfSoftmaxHaveTheDefinitionsBits) {
  for (const format_id format : formats) {
    for (const std::int64_t cols : {1, 77, 2051}) {
      matrix grad = random_matrix(format, cols, 1, 2), y = random_matrix(format, cols, 2, 3);
      matrix dx(format, cols, 1), dz(format, cols, 1);
      const softmax_options options{.rule = function_rule::torch_2_11, .offset = 5};
      softmax_gradient(grad.view(), y.view(), dx.view(), options, where());
      log_softmax_gradient(grad.view(), y.view(), dz.view(), options, where());
      for (std::int64_t r = 0; r < rows; ++r) {
        const int vector = torch::vector_of(format);
        const auto order = [&](std::int64_t offset) {
          return torch::softmax_gradient_order(format, cols, (offset + r * cols) % vector);
        };
        const words result = y.row(r);
        words expected = grad.row(r), logarithm = grad.row(r);
        torch::softmax_gradient_row(order(0), format, result.data(), expected.data(), cols);
        torch::log_softmax_gradient_row(order(5), result.data(), logarithm.data(), cols);
        ASSERT_EQ(dx.row(r), rounded(format, expected)) << name(format) << cols << " " << r;
        ASSERT_EQ(dz.row(r), rounded(format, logarithm)) << name(format) << cols << " " << r;
      }
    }
  }
}

TEST_P(RowFunctionsSuite, SoftmaxOfTritonHasTheDefinitionsBits) {
  for (const format_id format : formats) {
    matrix x = random_matrix(format, 3000, 1, 4), y(format, 3000, 1);
    for (const int elements : {0, 2}) {
      softmax(x.view(), y.view(),
              {.rule = function_rule::triton_3_6, .num_warps = 2, .elements_per_thread = elements},
              where());
      const int vector = elements == 0 ? torch::vector_of(format) : elements;
      for (std::int64_t r = 0; r < rows; ++r) {
        words expected = x.row(r);
        numerics::triton_3_6::softmax_row(numerics::triton_3_6::sum_order(3000, 2, vector),
                                          expected.data(), 3000);
        ASSERT_EQ(y.row(r), rounded(format, expected)) << name(format) << " " << elements;
      }
    }
  }
}

TEST_P(RowFunctionsSuite, LayerNormHasTheDefinitionsBits) {
  for (const format_id format : formats) {
    for (const std::int64_t cols : {1, 76, 1031}) {
      for (const bool affine : {false, true}) {
        matrix x = random_matrix(format, cols, 2, 5), y(format, cols, 1);
        matrix grad = random_matrix(format, cols, 1, 6), dx(format, cols, 1);
        matrix weight = random_matrix(format, cols, 2, 7), bias = random_matrix(format, cols, 1, 8);
        matrix mean(format_id::fp32, 1, 1), rstd(format_id::fp32, 1, 2);
        const const_matrix_view w = affine ? weight.view(1) : matrix_view{};
        const const_matrix_view b = affine ? bias.view(1) : matrix_view{};
        const layer_norm_options options{
            .rule = function_rule::torch_2_11, .epsilon = 0.5, .offset = 8};
        layer_norm(x.view(), w, b, y.view(), mean.view(), rstd.view(), options, where());
        layer_norm_gradient(grad.view(), x.view(), mean.view(), rstd.view(), w, dx.view(), options,
                            where());
        const words weights = weight.row(0), biases = bias.row(0);
        for (std::int64_t r = 0; r < rows; ++r) {
          words expected = x.row(r), gradient = grad.row(r);
          const torch::row_statistics s = torch::layer_norm_row(
              expected.data(), cols,
              {affine ? weights.data() : nullptr, affine ? biases.data() : nullptr}, epsilon,
              torch::has_vectors_of_4(cols, 8));
          torch::layer_norm_gradient_row(x.row(r).data(), s, affine ? weights.data() : nullptr,
                                         gradient.data(), cols);
          ASSERT_EQ(mean.get(r, 0), s.mean);
          ASSERT_EQ(rstd.get(r, 0), s.rstd);
          ASSERT_EQ(y.row(r), rounded(format, expected)) << name(format) << cols << " " << r;
          ASSERT_EQ(dx.row(r), rounded(format, gradient)) << name(format) << cols << " " << r;
        }
      }
    }
  }
}

TEST_P(RowFunctionsSuite, OnlyTheOffsetsRemainderBy8Matters) {
  constexpr std::int64_t large = std::numeric_limits<std::int64_t>::max();
  for (const format_id format : formats) {
    matrix x = random_matrix(format, 2051, 1, 10), grad = random_matrix(format, 2051, 1, 11);
    for (const std::int64_t offset : {large, large - 3, large - 7}) {
      const auto results = [&](std::int64_t o) {
        const softmax_options options{.rule = function_rule::torch_2_11, .offset = o};
        matrix y[] = {matrix(format, 2051, 1), matrix(format, 2051, 1), matrix(format, 2051, 1),
                      matrix(format, 2051, 1)};
        softmax(x.view(), y[0].view(), options, where());
        log_softmax(x.view(), y[1].view(), options, where());
        log_softmax_gradient(grad.view(), y[1].view(), y[2].view(), options, where());
        layer_norm(x.view(), {}, {}, y[3].view(), {}, {},
                   {.rule = function_rule::torch_2_11, .offset = o}, where());
        std::vector<std::uint8_t> bytes;
        for (const matrix& m : y) bytes.insert(bytes.end(), m.bytes.begin(), m.bytes.end());
        return bytes;
      };
      EXPECT_TRUE(results(offset) == results(offset % 8)) << name(format) << " " << offset;
    }
  }
}

TEST_P(RowFunctionsSuite, WritesInPlaceAndNothingElse) {
  matrix x = random_matrix(format_id::fp32, 77, 2, 9), y(format_id::fp32, 77, 2), z = x;
  const softmax_options options{.rule = function_rule::torch_2_11};
  softmax(x.view(), y.view(), options, where());
  softmax(z.view(), z.view(), options, where());
  for (std::int64_t r = 0; r < rows; ++r) {
    ASSERT_EQ(y.row(r), z.row(r));
    for (std::int64_t c = 0; c < 77; ++c) x.set(r, c, y.get(r, c));
  }
  EXPECT_EQ(x.bytes, z.bytes) << "gaps were written";
}

INSTANTIATE_TEST_SUITE_P(Backends, RowFunctionsSuite,
                         ::testing::ValuesIn(support::supported_backends()),
                         [](const auto& backend) { return backend.param; });

/// Arguments of the calls; each test spoils one.
class RowFunctionsArguments : public ::testing::Test {
 protected:
  template <class Error, class Call>
  void expect_refused(const std::string& expected, const Call& call) {
    try {
      call();
      ADD_FAILURE() << "nothing was refused; expected: " << expected;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(expected), std::string::npos) << e.what();
    }
    for (const float y : results_) ASSERT_EQ(y, 42.0f) << "something was written";
  }
  template <class Error>
  void expect_softmax_refused(const std::string& expected) {
    expect_refused<Error>(expected, [&] { softmax(in(), out_, options_); });
  }
  template <class Error>
  void expect_layer_norm_refused(const std::string& expected) {
    expect_refused<Error>(expected,
                          [&] { layer_norm(in(), weight_, bias_, out_, mean_, rstd_, norm_); });
  }
  template <class Error>
  void expect_layer_norm_gradient_refused(const std::string& expected) {
    expect_refused<Error>(
        expected, [&] { layer_norm_gradient(in(), in(), mean_, rstd_, weight_, out_, norm_); });
  }
  [[nodiscard]] const_matrix_view in() const { return view_of(in_.data(), 2, 4); }

  std::vector<float> in_ = std::vector<float>(8, 0.5f);
  std::vector<float> results_ = std::vector<float>(8, 42.0f);
  std::vector<float> numbers_ = std::vector<float>(16, 1.0f);
  matrix_view out_ = view_of(results_.data(), 2, 4);
  softmax_options options_{.rule = function_rule::torch_2_11};
  layer_norm_options norm_{.rule = function_rule::torch_2_11};
  matrix_view weight_ = view_of(numbers_.data(), 1, 4);
  matrix_view bias_ = view_of(numbers_.data(), 1, 4);
  matrix_view mean_ = view_of(numbers_.data() + 4, 2, 1);
  matrix_view rstd_ = view_of(numbers_.data() + 6, 2, 1);
};

TEST_F(RowFunctionsArguments, TheUnspoiledCallsWork) {
  softmax(in(), out_, options_);
  EXPECT_EQ(results_, std::vector<float>(8, 0.25f));
  layer_norm(in(), weight_, bias_, out_, mean_, rstd_, norm_);
  EXPECT_EQ(results_, std::vector<float>(8, 1.0f));
  EXPECT_EQ(numbers_[5], 0.5f);
  layer_norm_gradient(in(), in(), mean_, rstd_, weight_, out_, norm_);
  EXPECT_EQ(results_, std::vector<float>(8, 0.0f));
}
TEST_F(RowFunctionsArguments, Rule) {
  options_.rule = static_cast<function_rule>(enum_count<function_rule>);
  expect_softmax_refused<invalid_argument>("rule: ");
  for (const function_rule rule :
       {function_rule::exact, function_rule::cuda_13_0, function_rule::torch_compile_2_11}) {
    options_.rule = norm_.rule = rule;
    expect_softmax_refused<unsupported>(std::string(name(rule)) + " has no softmax of fp32");
    expect_layer_norm_refused<unsupported>(" has no layer_norm of fp32 numbers");
    expect_layer_norm_gradient_refused<unsupported>(" has no gradient of layer_norm of fp32");
  }
  options_.rule = function_rule::triton_3_6;
  expect_refused<unsupported>("rule triton_3_6 has no log_softmax of fp32 numbers",
                              [&] { log_softmax(in(), out_, options_); });
  expect_refused<unsupported>("rule triton_3_6 has no gradient of softmax of fp32 numbers",
                              [&] { softmax_gradient(in(), in(), out_, options_); });
  expect_refused<unsupported>("rule triton_3_6 has no gradient of log_softmax of fp32 numbers",
                              [&] { log_softmax_gradient(in(), in(), out_, options_); });
}
TEST_F(RowFunctionsArguments, Format) {
  std::vector<std::uint8_t> codes(8);
  const matrix_view v = view_of_codes(format_id::e4m3, codes.data(), 2, 4);
  EXPECT_THROW(softmax(v, v, options_), unsupported);
  EXPECT_THROW(softmax(v, out_, options_), invalid_argument);
}
TEST_F(RowFunctionsArguments, Options) {
  options_.offset = norm_.offset = -1;
  expect_softmax_refused<invalid_argument>("offset: must be at least 0, got -1");
  expect_layer_norm_refused<invalid_argument>("offset: must be at least 0, got -1");
  options_.offset = 0;
  for (const int warps : {0, 3, 64, -4}) {
    options_.num_warps = warps;
    expect_softmax_refused<invalid_argument>("num_warps: must be a power of two from 1 to 32");
  }
  options_.num_warps = 4;
  for (const int elements : {-1, 3, 16}) {
    options_.elements_per_thread = elements;
    expect_softmax_refused<invalid_argument>("elements_per_thread: must be 0, 1, 2, 4 or 8");
  }
}
TEST_F(RowFunctionsArguments, Shapes) {
  out_.cols = 3;
  expect_softmax_refused<invalid_argument>("in: shape must be that of out, [2, 3], got [2, 4]");
  out_.cols = 4;
  weight_.cols = 3;
  expect_layer_norm_refused<invalid_argument>("weight: shape must be [1, 4], got [1, 3]");
  expect_layer_norm_gradient_refused<invalid_argument>("weight: shape must be [1, 4], got [1, 3]");
  weight_.cols = 4;
  rstd_.rows = 1;
  expect_layer_norm_refused<invalid_argument>("rstd: shape must be [2, 1], got [1, 1]");
  expect_layer_norm_gradient_refused<invalid_argument>("rstd: shape must be [2, 1], got [1, 1]");
}
TEST_F(RowFunctionsArguments, StatisticsAreRequiredByTheGradientAlone) {
  mean_ = rstd_ = {};
  expect_layer_norm_gradient_refused<invalid_argument>("mean: data must not be null");
  layer_norm(in(), weight_, bias_, out_, mean_, rstd_, norm_);
}
TEST_F(RowFunctionsArguments, Overlaps) {
  mean_ = view_of(in_.data(), 2, 1);
  expect_layer_norm_refused<invalid_argument>("mean");
  mean_ = view_of(numbers_.data(), 2, 1);
  expect_layer_norm_refused<invalid_argument>("mean");
  mean_ = rstd_;
  expect_layer_norm_refused<invalid_argument>("rstd");
  weight_ = view_of(results_.data(), 1, 4);
  expect_layer_norm_refused<invalid_argument>("weight");
}
TEST_F(RowFunctionsArguments, EmptyViewsAreAllowed) {
  softmax({nullptr, format_id::fp32, 0, 4}, {nullptr, format_id::fp32, 0, 4}, options_);
  softmax({nullptr, format_id::fp32, 2, 0}, {nullptr, format_id::fp32, 2, 0}, options_);
}

}  // namespace
}  // namespace samebits
