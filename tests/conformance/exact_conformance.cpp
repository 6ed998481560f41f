// Functions of rule `exact` on arrays: every host backend against the definition, element by
// element, for every function, operand format, destination and rounding; and refused arguments.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "numerics/bits/convert.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/random.hpp"
#include "numerics/functions/exact_function.hpp"
#include "samebits/error.hpp"
#include "samebits/evaluate.hpp"
#include "samebits/types.hpp"
#include "support/backends.hpp"

namespace samebits {
namespace {

namespace real = numerics::real;

constexpr format_id operands[] = {format_id::fp32, format_id::fp16, format_id::bf16};
constexpr format_id destinations[] = {format_id::fp32, format_id::fp16, format_id::bf16,
                                      format_id::e4m3, format_id::e5m2};
constexpr std::int64_t rows = 3, cols = 587;  // no multiple of a vector or a chunk

/// Codes with a gap after each row and, for `step` 2, after each element.
struct codes {
  codes(format_id f, std::int64_t s)
      : format(f), step(s), memory(static_cast<std::size_t>(rows * 600 * s) * size(), 0xA5) {}

  [[nodiscard]] std::size_t size() const {
    return static_cast<std::size_t>(spec_of(format).storage_bits / 8);
  }
  [[nodiscard]] std::size_t at(std::int64_t i) const {
    return static_cast<std::size_t>(i / cols * 600 * step + i % cols * step) * size();
  }
  void set(std::int64_t i, std::uint64_t code) { std::memcpy(&memory[at(i)], &code, size()); }
  [[nodiscard]] std::uint64_t get(std::int64_t i) const {
    std::uint64_t code = 0;
    std::memcpy(&code, &memory[at(i)], size());
    return code;
  }
  [[nodiscard]] matrix_view view() { return {memory.data(), format, rows, cols, 600 * step, step}; }

  format_id format;
  std::int64_t step;
  std::vector<std::uint8_t> memory;
};

/// Pseudo-random codes; every second one has a magnitude between 2^-16 and 2^15. Among the first
/// are zeros, infinities, NaNs and numbers beyond which results are held.
std::uint64_t operand(format_id format, std::int64_t i, std::uint64_t seed) {
  constexpr std::uint32_t special[] = {0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000,
                                       0xFF800001, 0x00000001, 0x807FFFFF, 0x7F7FFFFF, 0xFF7FFFFF,
                                       0x3F800000, 0xBF800000, 0x42B17218, 0xC2D00000, 0x41C80001,
                                       0x33800000, 0xB3800000, 0x2B800000, 0xAB000000, 0x40A00001,
                                       0xBFA3A4BA, 0xBF40A14F, 0xBF407569, 0x3A000000};
  std::uint64_t x =
      seed * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(i) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 31)) * 0x94D049BB133111EBu;
  auto code = static_cast<std::uint32_t>(x >> 32);
  if (i % 2 == 0) code = (code & 0x807FFFFF) | ((111 + static_cast<std::uint32_t>(x & 31)) << 23);
  if (i < static_cast<std::int64_t>(std::size(special))) code = special[i];
  return numerics::convert_any(spec_of(format_id::fp32), spec_of(format), cast_rule{}, code, {})
      .code;
}

std::uint64_t number(format_id format, std::uint64_t code) {
  return numerics::decode<std::uint64_t>(spec_of(format), code);
}

struct settings {
  function f;
  bool gradient;
  format_id from, to;
  samebits::rounding rounding;
  samebits::overflow overflow;
  format_id grad = from;  // the gradient's format
};

std::uint64_t expected_code(const settings& s, std::uint64_t x, std::uint64_t grad,
                            std::uint64_t index) {
  const auto f = *real::find_exact(s.f, s.gradient);
  std::uint64_t y = real::with_function(
      f, [&]<real::exact_function F>() { return real::value_at<F>(number(s.from, x)); });
  if (s.gradient) {
    const std::uint64_t d =
        numerics::convert_any(spec_of(format_id::fp64), spec_of(format_id::fp32), {}, y, {}).code;
    y = real::gradient_product(number(s.grad, grad), number(format_id::fp32, d));
  }
  const std::uint64_t dither =
      numerics::align_random<std::uint64_t>(numerics::random_word(7, 3, index, 16), 16);
  return real::destination_code(spec_of(s.to), {s.rounding, s.overflow}, y, dither);
}

class ExactSuite : public ::testing::TestWithParam<std::string> {
 protected:
  void compare(const settings& s) {
    codes in(s.from, 1), grad(s.grad, 2), out(s.to, s.gradient ? 1 : 2);
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      in.set(i, operand(s.from, i, 1));
      grad.set(i, operand(s.grad, rows * cols - 1 - i, 2));
    }
    const evaluate_options options{
        .rounding = s.rounding,
        .overflow = s.overflow,
        .random = {.seed = 7, .stream = 3, .offset = 1000, .pitch = 601, .bits = 16}};
    const executor where{GetParam(), 2};
    const std::vector<std::uint8_t> before = out.memory;
    if (s.gradient) {
      evaluate_gradient(s.f, grad.view(), in.view(), out.view(), options, where);
    } else {
      evaluate(s.f, in.view(), out.view(), options, where);
    }
    codes expected(s.to, out.step);
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      const auto index = static_cast<std::uint64_t>(1000 + i / cols * 601 + i % cols);
      expected.set(i, expected_code(s, in.get(i), grad.get(i), index));
      ASSERT_EQ(out.get(i), expected.get(i))
          << (s.gradient ? "gradient of " : "") << name(s.f) << " " << name(s.from) << " to "
          << name(s.to) << " grad " << name(s.grad) << " " << name(s.rounding) << std::hex << " of "
          << in.get(i);
    }
    ASSERT_EQ(out.memory, expected.memory) << "something beside the elements was written";
  }
};

TEST_P(ExactSuite, HasTheDefinitionsBits) {
  for (int i = 0; i < enum_count<function>; ++i) {
    for (const bool gradient : {false, true}) {
      if (!real::find_exact(static_cast<function>(i), gradient)) continue;
      for (const format_id from : operands) {
        for (const format_id to : destinations) {
          compare({static_cast<function>(i), gradient, from, to, rounding::nearest_even,
                   overflow::ieee});
          if (from != format_id::fp32) continue;
          compare({static_cast<function>(i), gradient, from, to, rounding::nearest_even,
                   overflow::saturate});
          if (to == format_id::fp32) continue;
          compare(
              {static_cast<function>(i), gradient, from, to, rounding::stochastic, overflow::ieee});
        }
      }
    }
  }
}

TEST_P(ExactSuite, WritesInPlace) {
  codes x(format_id::bf16, 1);
  for (std::int64_t i = 0; i < rows * cols; ++i) x.set(i, operand(format_id::bf16, i, 3));
  codes y = x;
  evaluate(function::tanh, y.view(), y.view(), {}, {GetParam(), 1});
  const settings s{function::tanh,         false,         format_id::bf16, format_id::bf16,
                   rounding::nearest_even, overflow::ieee};
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    ASSERT_EQ(y.get(i), expected_code(s, x.get(i), 0, 0));
  }
}

/// Long rows of 16-bit operands, whose results SIMD backends take from a table: every operand, in
/// rows with gaps, by two threads.
TEST_P(ExactSuite, LongRowsHaveTheDefinitionsBits) {
  if (GetParam() == "reference") GTEST_SKIP() << "the definition itself";
  constexpr std::int64_t long_rows = 17, long_cols = 65543, pitch = 65550;
  const settings cases[] = {{function::exp, false, format_id::bf16, format_id::bf16,
                             rounding::nearest_even, overflow::ieee},
                            {function::gelu, false, format_id::fp16, format_id::e4m3,
                             rounding::nearest_even, overflow::saturate},
                            {function::log1p, false, format_id::bf16, format_id::fp32,
                             rounding::nearest_even, overflow::ieee}};
  for (const settings& s : cases) {
    std::vector<std::uint16_t> in(long_rows * pitch);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint16_t>(7 * i);
    const auto size = static_cast<std::size_t>(spec_of(s.to).storage_bits / 8);
    std::vector<std::uint8_t> out(2 * size * in.size(), 0xA5), expected = out;
    std::vector<std::uint64_t> results(65536);
    for (std::uint64_t x = 0; x < results.size(); ++x) results[x] = expected_code(s, x, 0, 0);
    for (std::int64_t i = 0; i < long_rows * long_cols; ++i) {
      const auto at = static_cast<std::size_t>(i / long_cols * pitch + i % long_cols);
      std::memcpy(&expected[2 * size * at], &results[in[at]], size);
    }
    const executor where{GetParam(), 2};
    evaluate(s.f, {in.data(), s.from, long_rows, long_cols, pitch, 1},
             {out.data(), s.to, long_rows, long_cols, 2 * pitch, 2}, {.overflow = s.overflow},
             where);
    ASSERT_TRUE(out == expected) << name(s.f) << " " << name(s.from) << " to " << name(s.to);
    if (s.from != s.to) continue;
    evaluate(s.f, {in.data(), s.from, 1, long_rows * pitch, 1, 1},
             {in.data(), s.to, 1, long_rows * pitch, 1, 1}, {}, where);  // in place
    for (std::size_t i = 0; i < in.size(); ++i) {
      ASSERT_EQ(in[i], results[static_cast<std::uint16_t>(7 * i)]) << i;
    }
  }
}

TEST_P(ExactSuite, GradientsOfAnotherFormatHaveTheDefinitionsBits) {
  for (const function f : {function::silu, function::gelu, function::gelu_tanh}) {
    for (const format_id from : operands) {
      for (const format_id grad : operands) {
        if (grad == from) continue;
        for (const format_id to : destinations) {
          compare({f, true, from, to, rounding::nearest_even, overflow::ieee, grad});
        }
        compare({f, true, from, format_id::bf16, rounding::stochastic, overflow::ieee, grad});
      }
    }
  }
}

TEST_P(ExactSuite, WritesGradientsInPlace) {
  for (const format_id from : operands) {
    for (const format_id to : operands) {
      const settings s{function::silu, true, from, to, rounding::nearest_even, overflow::ieee, to};
      codes x(from, 1), grad(to, 2);
      for (std::int64_t i = 0; i < rows * cols; ++i) {
        x.set(i, operand(from, i, 4));
        grad.set(i, operand(to, rows * cols - 1 - i, 5));
      }
      codes expected = grad;
      for (std::int64_t i = 0; i < rows * cols; ++i) {
        expected.set(i, expected_code(s, x.get(i), grad.get(i), 0));
      }
      evaluate_gradient(s.f, grad.view(), x.view(), grad.view(), {}, {GetParam(), 2});
      ASSERT_EQ(grad.memory, expected.memory) << name(from) << " " << name(to);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ExactSuite, ::testing::ValuesIn(support::supported_backends()),
                         [](const auto& backend) { return backend.param; });

class ExactArguments : public ::testing::Test {
 protected:
  template <class Error>
  void expect_refused(const std::string& expected) {
    try {
      evaluate(f_, in_, out_, options_);
      ADD_FAILURE() << "nothing was refused; expected: " << expected;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(expected), std::string::npos) << e.what();
    }
    for (const float y : results_) ASSERT_EQ(y, 42.0f) << "something was written";
  }

  std::vector<float> operands_ = std::vector<float>(8, 0.5f);
  std::vector<float> results_ = std::vector<float>(8, 42.0f);
  function f_ = function::exp;
  const_matrix_view in_ = view_of(operands_);
  matrix_view out_ = view_of(results_);
  evaluate_options options_;
};

TEST_F(ExactArguments, TheUnspoiledCallWorks) {
  evaluate(f_, in_, out_);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(results_[7]), 0x3FD3094Cu);
}
TEST_F(ExactArguments, FunctionThatTheRuleLacks) {
  f_ = function::sin;
  expect_refused<unsupported>("rule exact has no sin of fp32 numbers");
  try {
    evaluate_gradient(function::exp, in_, in_, out_);
    ADD_FAILURE();
  } catch (const unsupported& e) {
    EXPECT_STREQ(e.what(), "rule exact has no gradient of exp of fp32 numbers");
  }
}
TEST_F(ExactArguments, Formats) {
  in_.format = format_id::tf32;
  expect_refused<unsupported>("rule exact has no exp of tf32 numbers");
  in_.format = format_id::fp32;
  out_.format = format_id::tf32;
  expect_refused<unsupported>("rule exact has no exp into tf32 numbers");
}
TEST_F(ExactArguments, Rounding) {
  options_.rounding = rounding::stochastic;
  expect_refused<unsupported>("options.rounding: rule exact rounds into fp32 to nearest even, got");
  std::vector<bf16> narrow(8);
  out_ = view_of(narrow);
  options_.random = {.seed = 5};  // which has 32 bits
  expect_refused<invalid_argument>("options.random.bits must be in 1..16 for functions, got 32");
  expect_refused<invalid_argument>("write .random = {.seed = ..., .bits = 16}");
  options_.random.bits = 0;
  expect_refused<invalid_argument>("options.random.bits must be in 1..32, got 0");
  options_.rounding = rounding::upward;
  expect_refused<unsupported>("rule exact rounds into bf16 to nearest even or stochastically, got");
}
TEST_F(ExactArguments, StochasticRoundingHas16BitsByDefault) {
  std::vector<bf16> by_default(8), with_16_bits(8);
  options_.rounding = rounding::stochastic;
  evaluate(f_, in_, view_of(by_default), options_);
  evaluate(f_, in_, view_of(with_16_bits),
           {.rounding = rounding::stochastic, .random = {.bits = 16}});
  EXPECT_EQ(std::memcmp(by_default.data(), with_16_bits.data(), 16), 0);
}
TEST_F(ExactArguments, Parameter) {
  options_.parameter = 1.0;
  expect_refused<invalid_argument>("parameter: exp has no parameter");
}
TEST_F(ExactArguments, Shape) {
  out_.cols = 7;
  expect_refused<invalid_argument>("in: shape must be that of out, [1, 7]");
}
TEST_F(ExactArguments, OutOfAnotherElementSizeMayNotShareMemory) {
  out_ = {operands_.data(), format_id::bf16, 1, 8, 8, 1};
  expect_refused<invalid_argument>("out");
}
TEST_F(ExactArguments, OutMayNotShareAPartOfIn) {
  std::vector<float> x(9, 42.0f);
  const const_matrix_view in = view_of(x.data(), 1, 8);
  EXPECT_THROW(evaluate(f_, in, view_of(x.data() + 1, 1, 8)), invalid_argument);
  EXPECT_THROW(evaluate_gradient(function::silu, in, out_, view_of(x.data() + 1, 1, 8)),
               invalid_argument);
  EXPECT_EQ(x, std::vector<float>(9, 42.0f));
}
TEST_F(ExactArguments, EmptyViewsAreAllowed) {
  in_.cols = out_.cols = 0;
  evaluate(f_, in_, out_);
}

}  // namespace
}  // namespace samebits
