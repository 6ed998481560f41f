// Tests of the oracle's arithmetic: values and flags worked by hand from the contract, and hardware binary32
// with its flags.
#include "oracle/arithmetic.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "oracle/test_support.hpp"

namespace samebits::oracle {
namespace {

using testing::random_codes;

constexpr std::uint64_t none = 0;

rounded_result run(operation op, std::string_view f, std::vector<std::uint64_t> codes,
                   const cast_rule& rule = {}, std::string_view to = "",
                   const random_bits& bits = {}) {
  std::vector<operand> operands;
  for (const std::uint64_t code : codes) operands.push_back({&format_named(f), code});
  return arithmetic(op, operands, format_named(to.empty() ? f : to), rule, bits);
}

rounded_result result(std::uint64_t code, std::uint64_t flags) {
  return {code, static_cast<unsigned>(flags)};
}

::testing::AssertionResult is(const rounded_result& got, std::uint64_t code, std::uint64_t flags) {
  if (got == result(code, flags)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << std::hex << "code " << got.code << " flags " << got.flags;
}

TEST(OracleArithmetic, Zeros) {
  const cast_rule down{rounding::downward};
  EXPECT_TRUE(is(run(operation::add, "fp16", {0x3C00, 0xBC00}), 0x0000, none));
  EXPECT_TRUE(is(run(operation::add, "fp16", {0x3C00, 0xBC00}, down), 0x8000, none));
  EXPECT_TRUE(is(run(operation::add, "fp16", {0x0000, 0x8000}, down), 0x8000, none));
  EXPECT_TRUE(is(run(operation::add, "fp16", {0x0000, 0x0000}, down), 0x0000, none));
  EXPECT_TRUE(is(run(operation::add, "fp16", {0x8000, 0x8000}), 0x8000, none));
  EXPECT_TRUE(is(run(operation::sub, "fp16", {0x8000, 0x0000}), 0x8000, none));
  EXPECT_TRUE(is(run(operation::mul, "e4m3", {0x80, 0x38}), 0x80, none));
  EXPECT_TRUE(is(run(operation::fma, "e4m3", {0x80, 0x38, 0x00}), 0x00, none));
  EXPECT_TRUE(is(run(operation::sqrt, "bf16", {0x8000}), 0x8000, none));
  EXPECT_TRUE(is(run(operation::rint, "fp16", {0xB400}), 0x8000, flag_inexact));  // -0.25
  EXPECT_TRUE(is(run(operation::rem, "fp16", {0xC400, 0x4000}), 0x8000, none));   // -4 rem 2
  EXPECT_TRUE(is(run(operation::min, "fp16", {0x0000, 0x8000}), 0x8000, none));
  EXPECT_TRUE(is(run(operation::max, "fp16", {0x8000, 0x0000}), 0x0000, none));
}

TEST(OracleArithmetic, InfinitiesAndNaNs) {
  const cast_rule saturate{rounding::nearest_even, overflow::saturate};
  const cast_rule saturate_finite{rounding::nearest_even, overflow::saturate_finite};
  const cast_rule keep{rounding::nearest_even, overflow::ieee, nan_policy::preserve_sign};
  EXPECT_TRUE(is(run(operation::div, "e4m3", {0x38, 0x00}), 0x7F, flag_divide_by_zero));
  EXPECT_TRUE(is(run(operation::div, "e4m3", {0xB8, 0x00}, saturate), 0xFE, flag_divide_by_zero));
  EXPECT_TRUE(is(run(operation::div, "e4m3", {0xB8, 0x00}, keep), 0xFF, flag_divide_by_zero));
  EXPECT_TRUE(is(run(operation::div, "e4m3", {0x00, 0x80}, keep), 0x7F, flag_invalid));
  EXPECT_TRUE(is(run(operation::div, "e5m2", {0x3C, 0x80}), 0xFC, flag_divide_by_zero));
  EXPECT_TRUE(is(run(operation::div, "e5m2", {0x7C, 0x00}), 0x7C, none));
  EXPECT_TRUE(is(run(operation::add, "e5m2", {0x7C, 0xFC}), 0x7F, flag_invalid));
  EXPECT_TRUE(is(run(operation::add, "e5m2", {0x7C, 0x7B}), 0x7C, none));
  EXPECT_TRUE(
      is(run(operation::add, "e5m2", {0x7C, 0x7B}, saturate), 0x7B, flag_overflow | flag_inexact));
  EXPECT_TRUE(is(run(operation::add, "e5m2", {0x7C, 0x3C}, {}, "e4m3"), 0x7F, flag_invalid));
  EXPECT_TRUE(is(run(operation::add, "e5m2", {0xFC, 0x3C}, keep, "e4m3"), 0xFF, flag_invalid));
  EXPECT_TRUE(
      is(run(operation::add, "e5m2", {0x7C, 0x3C}, saturate_finite, "e4m3"), 0x7F, flag_invalid));
  EXPECT_TRUE(is(run(operation::add, "e5m2", {0x7C, 0x3C}, saturate, "e4m3"), 0x7E,
                 flag_overflow | flag_inexact));
  EXPECT_TRUE(is(run(operation::fma, "fp16", {0x0000, 0x7C00, 0x7E00}), 0x7FFF, flag_invalid));
  EXPECT_TRUE(is(run(operation::fma, "fp16", {0x3C00, 0x7C00, 0x7E00}), 0x7FFF, none));
  EXPECT_TRUE(is(run(operation::add, "fp16", {0x7D00, 0x3C00}), 0x7FFF, flag_invalid));
  EXPECT_TRUE(is(run(operation::add, "fp16", {0xFE00, 0x3C00}, keep), 0x7FFF, none));
  EXPECT_TRUE(is(run(operation::add, "e4m3", {0x7F, 0x38}), 0x7F, none));  // e4m3's is quiet
  EXPECT_TRUE(is(run(operation::min_num, "fp16", {0x7E00, 0x3C00}), 0x3C00, none));
  EXPECT_TRUE(is(run(operation::min_num, "fp16", {0x3C00, 0x7D00}), 0x3C00, flag_invalid));
  EXPECT_TRUE(is(run(operation::max, "fp16", {0x3C00, 0x7E00}), 0x7FFF, none));
  EXPECT_TRUE(is(run(operation::sqrt, "fp16", {0xBC00}), 0x7FFF, flag_invalid));
  EXPECT_TRUE(is(run(operation::rem, "fp16", {0x3C00, 0xFC00}), 0x3C00, none));
  EXPECT_TRUE(is(run(operation::rem, "fp16", {0x7C00, 0x3C00}), 0x7FFF, flag_invalid));
  EXPECT_TRUE(is(run(operation::rem, "fp16", {0x3C00, 0x0000}), 0x7FFF, flag_invalid));
}

TEST(OracleArithmetic, OverflowAndUnderflow) {
  constexpr unsigned over = flag_overflow | flag_inexact;
  constexpr unsigned under = flag_underflow | flag_inexact;
  // 448 + 16 = 464, e4m3's tie, stays; 448 + 18 does not.
  EXPECT_TRUE(is(run(operation::add, "e4m3", {0x7E, 0x58}), 0x7E, flag_inexact));
  EXPECT_TRUE(is(run(operation::add, "e4m3", {0x7E, 0x59}), 0x7F, over));
  EXPECT_TRUE(is(run(operation::add, "e4m3", {0x7E, 0x59}, {rounding::toward_zero}), 0x7E,
                 flag_inexact));  // 448 as rounded: no overflow
  EXPECT_TRUE(is(run(operation::add, "e4m3", {0x7E, 0x30}, {rounding::to_odd}), 0x7E, over));
  EXPECT_TRUE(is(run(operation::mul, "e5m2", {0x7B, 0x40}), 0x7C, over));
  EXPECT_TRUE(is(run(operation::mul, "e5m2", {0x7B, 0xC0}, {rounding::upward}), 0xFB, over));
  // fp16: 2^-24 * 0.5, a tie to zero; -2^-25 toward minus infinity.
  EXPECT_TRUE(is(run(operation::mul, "fp16", {0x0001, 0x3800}), 0x0000, under));
  EXPECT_TRUE(
      is(run(operation::mul, "fp16", {0x8001, 0x3800}, {rounding::downward}), 0x8001, under));
  // Exact subnormals raise nothing.
  EXPECT_TRUE(is(run(operation::mul, "fp16", {0x0400, 0x3800}), 0x0200, none));
  // 2^-14 * (1 - 2^-22): unbounded, too, it rounds to 2^-14.
  EXPECT_TRUE(
      is(run(operation::mul, "fp32", {0x387FE000, 0x3F801000}, {}, "fp16"), 0x0400, flag_inexact));
  // 2^-14 * (1 - 2^-12), unbounded, is a tie to 2^-14; toward zero it stays below.
  EXPECT_TRUE(
      is(run(operation::mul, "fp32", {0x387FF000, 0x3F800000}, {}, "fp16"), 0x0400, flag_inexact));
  EXPECT_TRUE(
      is(run(operation::mul, "fp32", {0x387FF000, 0x3F800000}, {rounding::toward_zero}, "fp16"),
         0x03FF, under));
  // 2^-14 * (1 - 2^-11) is on the unbounded grid: min normal as stored, but tiny.
  EXPECT_TRUE(is(run(operation::mul, "fp32", {0x387FE000, 0x3F800000}, {}, "fp16"), 0x0400, under));
}

TEST(OracleArithmetic, StochasticUnderflowIsThatOfTheSameBits) {
  // 2^-14 * (1 - 2^-12): on the subnormal grid v = 3/4, on the unbounded one 1/2.
  const cast_rule rule{rounding::stochastic};
  const auto of = [&](std::uint32_t r) {
    return run(operation::mul, "fp32", {0x387FF000, 0x3F800000}, rule, "fp16", {r, 2});
  };
  EXPECT_TRUE(is(of(0), 0x03FF, flag_underflow | flag_inexact));
  EXPECT_TRUE(is(of(1), 0x0400, flag_underflow | flag_inexact));
  EXPECT_TRUE(is(of(2), 0x0400, flag_inexact));
  EXPECT_TRUE(is(of(3), 0x0400, flag_inexact));
}

TEST(OracleArithmetic, Remainder) {
  const auto rem = [](double x, double y) {
    return std::bit_cast<double>(
        run(operation::rem, "fp64",
            {std::bit_cast<std::uint64_t>(x), std::bit_cast<std::uint64_t>(y)})
            .code);
  };
  for (const double x : {5.0, -5.0, 7.5, 1e300, -3.25, 0.75, 2.5, -2.5, 1.5}) {
    for (const double y : {1.0, -2.0, 3.0, 0.7, 1e-3, 1e5}) {
      EXPECT_EQ(rem(x, y), std::remainder(x, y)) << x << " rem " << y;
    }
  }
}

TEST(OracleArithmetic, Integers) {
  const operand big{&format_named("fp32"), 0x4F000000};        // 2^31
  const operand minus_big{&format_named("fp32"), 0xCF000000};  // -2^31
  const operand half{&format_named("fp16"), 0xB800};           // -0.5
  const operand nan{&format_named("e4m3"), 0x7F};
  const auto near = rounding::nearest_even;
  EXPECT_EQ(to_integer(big, 32, true, near).value, std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(to_integer(big, 32, true, near).flags, flag_invalid);
  EXPECT_EQ(to_integer(minus_big, 32, true, near).flags, 0u);
  EXPECT_EQ(to_integer(big, 32, false, near).value, cpp_int(1) << 31);
  EXPECT_EQ(to_integer(half, 32, false, near).flags, flag_inexact);
  EXPECT_EQ(to_integer(half, 32, false, rounding::downward).flags, flag_invalid);
  EXPECT_EQ(to_integer(half, 32, true, rounding::downward).value, -1);
  EXPECT_EQ(to_integer(nan, 64, true, near).value, 0);
  EXPECT_EQ(to_integer(nan, 64, true, near).flags, flag_invalid);
  EXPECT_TRUE(is(from_integer(-449, format_named("e4m3"), {}), 0xFE, flag_inexact));
  EXPECT_TRUE(is(from_integer(0, format_named("e4m3"), {rounding::downward}), 0x00, none));
  EXPECT_TRUE(is(scale_b({&format_named("fp16"), 0x3C01}, -24, format_named("fp16"), {}), 0x0001,
                 flag_underflow | flag_inexact));
  EXPECT_EQ(log_b({&format_named("fp16"), 0x0001}).value, -24);
  EXPECT_EQ(log_b(nan).flags, flag_invalid);
}

TEST(OracleArithmetic, Orders) {
  const format& fp16 = format_named("fp16");
  const format& e4m3 = format_named("e4m3");
  EXPECT_EQ(compare_values({&fp16, 0x8000}, {&e4m3, 0x00}).order, relation::equal);
  EXPECT_EQ(compare_values({&fp16, 0xBC00}, {&e4m3, 0x01}).order, relation::less);
  EXPECT_EQ(compare_values({&fp16, 0x7E00}, {&e4m3, 0x01}).flags, 0u);
  EXPECT_EQ(compare_values({&fp16, 0x7C01}, {&e4m3, 0x01}).flags, flag_invalid);
  EXPECT_TRUE(total_order(fp16, 0x8000, 0x0000));
  EXPECT_FALSE(total_order(fp16, 0x0000, 0x8000));
  EXPECT_TRUE(total_order(fp16, 0xFE00, 0xFC00));
  EXPECT_TRUE(total_order(fp16, 0x7D00, 0x7E00));
}

unsigned machine_flags() {
  const int raised = std::fetestexcept(FE_ALL_EXCEPT);
  return ((raised & FE_INVALID) != 0 ? flag_invalid : 0u) |
         ((raised & FE_DIVBYZERO) != 0 ? flag_divide_by_zero : 0u) |
         ((raised & FE_OVERFLOW) != 0 ? flag_overflow : 0u) |
         ((raised & FE_UNDERFLOW) != 0 ? flag_underflow : 0u) |
         ((raised & FE_INEXACT) != 0 ? flag_inexact : 0u);
}

/// The machine's operation; volatile, so that neither rounding mode nor flags are computed early.
float by_machine(operation op, float x, float y) {
  volatile float a = x;
  volatile float b = y;
  switch (op) {
    case operation::add: return a + b;
    case operation::sub: return a - b;
    case operation::mul: return a * b;
    case operation::div: return a / b;
    default: return std::sqrt(a);
  }
}

#if defined(__x86_64__)  // it sees tininess after rounding, as the contract does
TEST(OracleArithmetic, HardwareBinary32WithFlags) {
  const format& fp32 = format_named("fp32");
  auto a = random_codes(20000, 32, 11);
  auto b = random_codes(20000, 32, 12);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (i % 2 == 0) b[i] = (b[i] & 0x807FFFFF) | (a[i] & 0x7F800000);  // near exponents
    if (i % 3 == 0) a[i] &= 0xFF800FFF;                                // and results on the edges
    if (i % 5 == 0) b[i] = (b[i] & 0x807FFFFF) | (0x3F800000 - (i % 7 << 23));
    if (i % 4 == 0) a[i] &= 0x80FFFFFF;
  }
  for (const auto& [mode, direction] : testing::machine_modes) {
    for (const operation op :
         {operation::add, operation::sub, operation::mul, operation::div, operation::sqrt}) {
      for (std::size_t i = 0; i < a.size(); ++i) {
        const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(a[i]));
        const auto y = std::bit_cast<float>(static_cast<std::uint32_t>(b[i]));
        std::fesetround(direction);
        std::feclearexcept(FE_ALL_EXCEPT);
        auto code = std::bit_cast<std::uint32_t>(by_machine(op, x, y));
        const unsigned flags = machine_flags();
        std::fesetround(FE_TONEAREST);
        if ((code & 0x7FFFFFFF) > 0x7F800000) code = 0x7FFFFFFF;
        const std::array<operand, 2> operands{operand{&fp32, a[i]}, {&fp32, b[i]}};
        const rounded_result got =
            arithmetic(op, {operands.data(), op == operation::sqrt ? 1u : 2u}, fp32, {mode});
        ASSERT_TRUE(is(got, code, flags))
            << std::hex << a[i] << ' ' << b[i] << " mode " << static_cast<int>(mode) << " machine "
            << code << ' ' << flags << " op " << static_cast<int>(op);
      }
    }
  }
}
#endif

}  // namespace
}  // namespace samebits::oracle
