// Functions of arrays: every host backend against the definition, element by element; and refused
// arguments.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "numerics/hardware/evaluate.hpp"
#include "samebits/error.hpp"
#include "samebits/evaluate.hpp"
#include "support/backends.hpp"

namespace samebits {
namespace {

constexpr format_id formats[] = {format_id::fp32, format_id::fp16, format_id::bf16};
constexpr std::int64_t rows = 7, cols = 683;  // no multiple of a vector or a chunk

/// Codes in memory with gaps: row stride 700, column stride 1 or 2.
class codes {
 public:
  codes(format_id format, std::int64_t col_stride)
      : format_(format),
        step_(col_stride),
        memory_(static_cast<std::size_t>(rows * row_stride()) * size(), 0xA5) {}

  [[nodiscard]] matrix_view view() {
    return {memory_.data(), format_, rows, cols, row_stride(), step_};
  }
  void set(std::int64_t i, std::uint32_t code) { std::memcpy(at(i), &code, size()); }
  [[nodiscard]] std::uint32_t get(std::int64_t i) {
    std::uint32_t code = 0;
    std::memcpy(&code, at(i), size());
    return code;
  }
  /// The number of bytes that no element has, and that were written.
  [[nodiscard]] std::size_t spoiled() {
    codes clean(format_, step_);
    for (std::int64_t i = 0; i < rows * cols; ++i) clean.set(i, get(i));
    std::size_t changed = 0;
    for (std::size_t i = 0; i < memory_.size(); ++i) changed += memory_[i] != clean.memory_[i];
    return changed;
  }

 private:
  [[nodiscard]] std::size_t size() const { return format_ == format_id::fp32 ? 4 : 2; }
  [[nodiscard]] std::int64_t row_stride() const { return 700 * step_; }
  std::uint8_t* at(std::int64_t i) {
    const std::int64_t element = i / cols * row_stride() + i % cols * step_;
    return memory_.data() + element * static_cast<std::int64_t>(size());
  }

  format_id format_;
  std::int64_t step_;
  std::vector<std::uint8_t> memory_;
};

/// Zeros, infinities, NaNs, numbers near borders of formulas; then pseudo-random codes, every
/// second one of a magnitude between 2^-16 and 2^16.
std::uint32_t operand(format_id format, std::int64_t i, std::uint64_t seed) {
  constexpr std::uint32_t special[] = {0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000,
                                       0xFF800001, 0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF,
                                       0xFF7FFFFF, 0x3F800000, 0xBF800000, 0x40400000, 0xC0400000,
                                       0x41A00000, 0x42B17218, 0xC2CFF1B5, 0x47CE4780, 0xC7CE477F,
                                       0x4120E148, 0xC2FC0000, 0xC2FC0001, 0x3F19999A, 0x41102CB4,
                                       0x7E800000, 0x7E800001, 0xC0000000, 0x3FFFFFFF, 0x3EFFFFFF};
  if (i < static_cast<std::int64_t>(std::size(special))) {
    const std::uint32_t code = special[i];
    return format == format_id::fp32 ? code : numerics::torch_2_11::code_of(format, code);
  }
  std::uint64_t x = seed + static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  auto code = static_cast<std::uint32_t>(x >> 32);
  if (i % 2 == 0) {
    code = (code & 0x807FFFFF) | (0x37800000 + static_cast<std::uint32_t>(x & 31) * 0x800000);
    return format == format_id::fp32 ? code : numerics::torch_2_11::code_of(format, code);
  }
  return format == format_id::fp32 ? code : code >> 16;
}

/// Parameters that choose each of pow's kernels; one parameter of the other functions.
std::vector<double> parameters_of(function f) {
  if (f == function::pow) return {0, 1, 0.5, -0.5, -1, 2, 3, -2, 1.7, 2.001};
  return {0.3};
}

numerics::function_plan plan_of(function_rule rule, function f, format_id format, double p) {
  if (!has_parameter(f)) p = 0;
  return numerics::plan_of(rule, f, format, std::bit_cast<std::uint64_t>(p),
                           std::bit_cast<std::uint64_t>(p - 1));
}

class EvaluateSuite : public ::testing::TestWithParam<std::string> {
 protected:
  void compare(function_rule rule, function f, format_id format, bool gradient, double parameter) {
    codes in(format, 1), grad(format, 2), out(format, gradient ? 1 : 2);
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      in.set(i, operand(format, i, 1));
      grad.set(i, operand(format, rows * cols - 1 - i, 2));
    }
    evaluate_options options{.rule = rule};
    if (has_parameter(f)) options.parameter = parameter;
    const executor where{GetParam(), 2};
    if (gradient) {
      evaluate_gradient(f, grad.view(), in.view(), out.view(), options, where);
    } else {
      evaluate(f, in.view(), out.view(), options, where);
    }
    EXPECT_EQ(out.spoiled(), 0u);
    const numerics::function_plan plan = plan_of(rule, f, format, parameter);
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      const std::uint32_t expected =
          gradient ? numerics::evaluate_gradient_code(plan, grad.get(i), in.get(i))
                   : numerics::evaluate_code(plan, in.get(i));
      ASSERT_EQ(out.get(i), expected)
          << name(rule) << (gradient ? " gradient of " : " ") << name(f) << " " << name(format)
          << " " << parameter << std::hex << " of " << in.get(i);
    }
  }
};

TEST_P(EvaluateSuite, HasTheDefinitionsBits) {
  for (int r = 0; r < enum_count<function_rule>; ++r) {
    for (int i = 0; i < enum_count<function>; ++i) {
      for (const format_id format : formats) {
        const function_rule rule = static_cast<function_rule>(r);
        if (!numerics::has_function(rule, static_cast<function>(i), format)) continue;
        for (const double parameter : parameters_of(static_cast<function>(i))) {
          compare(rule, static_cast<function>(i), format, false, parameter);
          if (rule != function_rule::torch_2_11) continue;
          compare(rule, static_cast<function>(i), format, true, parameter);
        }
      }
    }
  }
}

TEST_P(EvaluateSuite, WritesInPlace) {
  codes x(format_id::fp32, 1);
  for (std::int64_t i = 0; i < rows * cols; ++i) x.set(i, operand(format_id::fp32, i, 3));
  codes y = x;
  evaluate(function::tanh, y.view(), y.view(), {.rule = function_rule::cuda_13_0}, {GetParam(), 1});
  const auto plan = plan_of(function_rule::cuda_13_0, function::tanh, format_id::fp32, 0);
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    ASSERT_EQ(y.get(i), numerics::evaluate_code(plan, x.get(i)));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, EvaluateSuite,
                         ::testing::ValuesIn(support::supported_backends()),
                         [](const auto& backend) { return backend.param; });

class EvaluateArguments : public ::testing::Test {
 protected:
  template <class Error>
  void expect_refused(const std::string& expected) {
    try {
      evaluate(f_, view_of(in_), out_, options_, where_);
      ADD_FAILURE() << "nothing was refused; expected: " << expected;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(expected), std::string::npos) << e.what();
    }
    for (const float y : results_) ASSERT_EQ(y, 42.0f) << "something was written";
  }

  std::vector<float> in_ = std::vector<float>(8, 0.5f);
  std::vector<float> results_ = std::vector<float>(8, 42.0f);
  function f_ = function::exp;
  matrix_view out_ = view_of(results_);
  evaluate_options options_{.rule = function_rule::cuda_13_0};
  executor where_;
};

TEST_F(EvaluateArguments, TheUnspoiledCallWorks) {
  evaluate(f_, view_of(in_), out_, options_, where_);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(results_[7]), 0x3FD3094Cu);
}
TEST_F(EvaluateArguments, Function) {
  f_ = static_cast<function>(enum_count<function>);
  expect_refused<invalid_argument>("f: ");
}
TEST_F(EvaluateArguments, Rule) {
  options_.rule = static_cast<function_rule>(enum_count<function_rule>);
  expect_refused<invalid_argument>("rule: ");
}
TEST_F(EvaluateArguments, RoundingOfOtherRules) {
  options_.rounding = rounding::stochastic;
  expect_refused<invalid_argument>("options: rule cuda_13_0 has its own rounding");
  options_.rounding = rounding::nearest_even;
  options_.overflow = overflow::saturate;
  expect_refused<invalid_argument>("options: rule cuda_13_0 has its own rounding");
}
TEST_F(EvaluateArguments, FunctionThatTheRuleLacks) {
  f_ = function::gelu;
  expect_refused<unsupported>("rule cuda_13_0 has no gelu of fp32 numbers");
  f_ = function::sin;
  options_.rule = function_rule::torch_2_11;
  expect_refused<unsupported>("rule torch_2_11 has no sin of fp32 numbers");
}
TEST_F(EvaluateArguments, GradientOfARuleWithout) {
  EXPECT_THROW(evaluate_gradient(f_, view_of(in_), view_of(in_), out_, options_), unsupported);
}
TEST_F(EvaluateArguments, Parameter) {
  options_.parameter = 1.0;
  expect_refused<invalid_argument>("parameter: exp has no parameter");
  f_ = function::pow;
  options_.parameter.reset();
  expect_refused<invalid_argument>("parameter: pow needs its exponent");
}
TEST_F(EvaluateArguments, Views) {
  out_.cols = 7;
  expect_refused<invalid_argument>("in: shape must be that of out, [1, 7]");
  out_ = view_of(results_);
  out_.format = format_id::tf32;
  expect_refused<invalid_argument>("in: format must be that of out, tf32, got fp32");
  out_ = view_of(in_);
  out_.data = in_.data() + 1;
  out_.cols = 7;
  const const_matrix_view in{in_.data(), format_id::fp32, 1, 7, 7, 1};
  EXPECT_THROW(evaluate(f_, in, out_, options_), invalid_argument);
}
TEST_F(EvaluateArguments, EmptyViewsAreAllowed) {
  out_.cols = 0;
  evaluate(f_, {nullptr, format_id::fp32, 1, 0}, out_, options_);
}

}  // namespace
}  // namespace samebits
