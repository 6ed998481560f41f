// Tests of check_conversion: accepts correct kernels, finds each kind of planted error, and
// describes the error.
#include "samebits/testkit/conversion.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "samebits/convert.hpp"
#include "samebits/scalar.hpp"
#include "samebits/testkit/oracle.hpp"
#include "support/refusal.hpp"

namespace samebits::testkit {
namespace {

using enum format_id;
using fp32_span = std::span<const std::uint32_t>;
using byte_span = std::span<std::uint8_t>;

constexpr cast_rule saturating{rounding::nearest_even, overflow::saturate};
constexpr check_effort few{.batches = 4, .batch_size = 500};

/// Returns a kernel that applies a function to each code, for example a function with a planted
/// error.
template <class Element>
auto elementwise(Element element) {
  return [element](fp32_span in, byte_span out) {
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = element(in[i]);
  };
}

std::uint8_t right(std::uint32_t code) { return convert_code<e4m3, fp32>(code, saturating); }

const conversion_under_test to_e4m3{.from = fp32, .to = e4m3, .rule = saturating};

TEST(CheckConversion, PassesWhatIsRight) {
  const check_result result = check_conversion(to_e4m3, elementwise(right));
  EXPECT_TRUE(result) << result.message();
  EXPECT_EQ(result.message(), "");
  EXPECT_FALSE(result.failure());
  EXPECT_GT(result.compared(), 100'000u);
}

/// Rounds ties away from zero: wrong by one ulp on every second tie.
std::uint8_t ties_away(std::uint32_t code) {
  return convert_code<e4m3, fp32>(code, {rounding::nearest_away, overflow::saturate});
}

TEST(CheckConversion, TheOracleIsAskedOnRequest) {
  check_effort effort{.batches = 4, .oracle = oracle_code};
  const conversion_under_test random{
      fp32, bf16, {rounding::stochastic}, {.seed = 9, .offset = 1000, .bits = 16}};
  const check_result stochastic = check_conversion(
      random,
      [](std::span<const float> in, std::span<std::uint16_t> out) {
        for (std::size_t i = 0; i < in.size(); ++i) {
          out[i] =
              encode<bf16>(in[i], {rounding::stochastic}, {random_word(9, 0, 1000 + i, 16), 16});
        }
      },
      effort);
  EXPECT_TRUE(stochastic) << stochastic.message();
  const check_result agreed = check_conversion(to_e4m3, elementwise(right), effort);
  EXPECT_TRUE(agreed) << agreed.message();
  effort.oracle = [](const conversion_under_test& c, std::uint64_t code, std::uint64_t position) {
    return oracle_code(c, code, position) ^ (code == 0x43E80000 ? 1u : 0u);
  };
  const check_result other = check_conversion(to_e4m3, elementwise(right), effort);
  EXPECT_NE(other.message().find("samebits' own reference and the oracle disagree on input"),
            std::string::npos)
      << other.message();
}

TEST(CheckConversion, FindsTiesRoundedAway) {
  const check_result result = check_conversion(to_e4m3, elementwise(ties_away));
  ASSERT_FALSE(result);
  ASSERT_TRUE(result.failure());
  const counterexample& c = *result.failure();
  EXPECT_TRUE(c.is_tie);
  EXPECT_EQ(c.got, ties_away(static_cast<std::uint32_t>(c.input)));
  EXPECT_EQ(c.expected, right(static_cast<std::uint32_t>(c.input)));
  EXPECT_EQ(c.got - c.expected, 1u) << "one ulp";
  // Checks the tie by arithmetic: the distances to both candidates are equal, in exact binary64.
  const double x = decode_double(fp32, c.input);
  EXPECT_EQ(std::abs(decode_double(e4m3, c.got) - x),
            std::abs(decode_double(e4m3, c.expected) - x));
  EXPECT_EQ(c.size, 1);
  EXPECT_EQ(c.in_offset, 0);
  EXPECT_LE(std::popcount(static_cast<std::uint32_t>(c.input) << 9), 1) << "shrunk to one bit";
  for (const char* part : {"fp32 to e4m3", "the function under test", "input ", "got ", "expected ",
                           "fpinspect cast --to e4m3", "is a tie", "the edges of the conversion"}) {
    EXPECT_NE(result.message().find(part), std::string::npos) << part << " in " << result.message();
  }
}

TEST(CheckConversion, ATieIsNamedOnlyWhereItIsOne) {
  const check_result result =
      check_conversion(to_e4m3, elementwise([](std::uint32_t code) -> std::uint8_t {
                         return code == 0x3F800001 ? 0x39 : right(code);  // next to 1.0, not a tie
                       }),
                       {.batches = 0, .sweep_stride = 1});
  ASSERT_TRUE(result.failure());
  EXPECT_EQ(result.failure()->input, 0x3F800001u);
  EXPECT_FALSE(result.failure()->is_tie);
  EXPECT_EQ(result.message().find("is a tie"), std::string::npos);
}

TEST(CheckConversion, FindsErrorsInSpecialCodes) {
  const std::vector<std::function<std::uint8_t(std::uint32_t)>> planted{
      [](std::uint32_t c) { return c == 0x80000000 ? std::uint8_t{0} : right(c); },
      [](std::uint32_t c) {  // ignores payloads in the low half
        return c == 0x7F800001 ? std::uint8_t{0x7E} : right(c);
      },
      [](std::uint32_t c) { return (c & 0x7FFFFFFF) < 0x00800000 ? std::uint8_t{0} : right(c); },
      [](std::uint32_t c) {  // 464 is a tie with a value beyond max
        return c == 0x43E80000 ? std::uint8_t{0x7F} : right(c);
      },
      [](std::uint32_t c) { return c == 0xFF800000 ? std::uint8_t{0xFF} : right(c); },
      [](std::uint32_t c) {  // flushes the smallest subnormal
        return c == 0x3B000000 ? std::uint8_t{0} : right(c);
      },
  };
  for (std::size_t i = 0; i < planted.size(); ++i) {
    const check_result result = check_conversion(to_e4m3, elementwise(planted[i]), few);
    ASSERT_TRUE(result.failure()) << i;
    EXPECT_EQ(result.failure()->size, 1) << result.message();
  }
}

TEST(CheckConversion, FindsATailThatIsDone4AtATime) {
  const auto kernel = [](fp32_span in, byte_span out) {
    for (std::size_t i = 0; i < in.size() / 4 * 4; ++i) out[i] = right(in[i]);
    if (in.size() < 16) std::transform(in.begin(), in.end(), out.begin(), right);
  };
  const check_result result = check_conversion(to_e4m3, kernel, few);
  ASSERT_TRUE(result.failure());
  EXPECT_EQ(result.failure()->size, 17) << result.message();
  EXPECT_EQ(result.failure()->position, 16);
}

TEST(CheckConversion, FindsWhatDependsOnAlignment) {
  const auto kernel = [](fp32_span in, byte_span out) {
    std::transform(in.begin(), in.end(), out.begin(), right);
    const bool aligned = reinterpret_cast<std::uintptr_t>(out.data()) % 8 == 0;
    if (!aligned && out.size() > 8) out[8] ^= 1;
  };
  const check_result result = check_conversion(to_e4m3, kernel, few);
  ASSERT_TRUE(result.failure());
  EXPECT_EQ(result.failure()->size, 9) << result.message();
  EXPECT_NE(result.failure()->out_offset % 8, 0);
  EXPECT_EQ(result.failure()->in_offset, 0) << "does not matter";
}

TEST(CheckConversion, FindsWritesElsewhere) {
  const auto beyond = [](fp32_span in, byte_span out) {
    std::transform(in.begin(), in.end(), out.begin(), right);
    if (in.size() % 4 == 3) out.data()[out.size()] = 0;
  };
  check_result result = check_conversion(to_e4m3, beyond, few);
  EXPECT_FALSE(result);
  EXPECT_FALSE(result.failure());
  EXPECT_NE(result.message().find("wrote outside its output"), std::string::npos);
  EXPECT_NE(result.message().find("a call of 3 elements"), std::string::npos) << result.message();

  const auto input = [](fp32_span in, byte_span out) {
    std::transform(in.begin(), in.end(), out.begin(), right);
    if (!in.empty()) const_cast<std::uint32_t&>(in[0]) = 0x3F800000;
  };
  result = check_conversion(to_e4m3, input, few);
  EXPECT_FALSE(result);
  EXPECT_NE(result.message().find("wrote to its input"), std::string::npos);
}

TEST(CheckConversion, WhatTheFunctionThrowsIsAFailure) {
  int calls = 0;
  const auto kernel = [&calls](fp32_span, byte_span) {
    ++calls;
    throw std::runtime_error("no such device");
  };
  const check_result result = check_conversion(to_e4m3, kernel, few);
  EXPECT_FALSE(result);
  EXPECT_NE(result.message().find("threw: no such device"), std::string::npos);
  EXPECT_EQ(calls, 1) << "it is not called again";
}

TEST(CheckConversion, RandomBatchesFindWhatNoEdgeShows) {
  // fp64 has too many codes for every edge: an error in one of 4096 patterns of low bits.
  const auto kernel = [](std::span<const double> in, std::span<float> out) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      const auto code = std::bit_cast<std::uint64_t>(in[i]);
      const std::uint64_t planted = (code & 0xFFF) == 0xABC ? 1 : 0;
      out[i] = std::bit_cast<float>(convert_code<fp32, fp64>(code) ^
                                    static_cast<std::uint32_t>(planted));
    }
  };
  const check_result result =
      check_conversion({.from = fp64, .to = fp32}, kernel, {.batches = 400, .seed = 5});
  ASSERT_TRUE(result.failure());
  EXPECT_EQ(result.failure()->input & 0xFFF, 0xABCu);
  EXPECT_EQ(result.failure()->size, 1);
}

TEST(CheckConversion, EveryBorderOfAnFp64SourceIsFound) {
  // The double with one bit after the tie between 1 and the next e4m3 number, and its negative.
  for (const std::uint64_t wrong : {0x3FF1000000000001u, 0xBFF1000000000001u}) {
    const auto kernel = [wrong](std::span<const double> in, byte_span out) {
      for (std::size_t i = 0; i < in.size(); ++i) {
        const auto code = std::bit_cast<std::uint64_t>(in[i]);
        out[i] = convert_code<e4m3, fp64>(code == wrong ? code - 1 : code);
      }
    };
    const check_result result = check_conversion({.from = fp64, .to = e4m3}, kernel, few);
    ASSERT_TRUE(result.failure());
    EXPECT_EQ(result.failure()->input, wrong);
  }
}

TEST(CheckConversion, StochasticKernelsAreComparedByTheirIndex) {
  const conversion_under_test conversion{
      fp32, bf16, {rounding::stochastic}, {.seed = 9, .stream = 2, .offset = 1000, .bits = 16}};
  const auto kernel = [](std::uint64_t shift) {
    return [shift](std::span<const float> in, std::span<std::uint16_t> out) {
      for (std::size_t i = 0; i < in.size(); ++i) {
        out[i] = encode<bf16>(in[i], {rounding::stochastic},
                              {random_word(9, 2, 1000 + i + shift, 16), 16});
      }
    };
  };
  const check_result good = check_conversion(conversion, kernel(0), few);
  EXPECT_TRUE(good) << good.message();
  const check_result bad = check_conversion(conversion, kernel(1), few);
  ASSERT_TRUE(bad.failure());
  EXPECT_NE(bad.message().find("--seed 9 --stream 2 --offset"), std::string::npos) << bad.message();
}

TEST(CheckConversion, NarrowSourcesAreWhole) {
  const auto kernel = [](std::span<const std::uint16_t> in, std::span<std::uint8_t> out) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      out[i] = convert_code<e5m2, fp16>(in[i]);
      if (in[i] == 0x1234) out[i] ^= 1;
    }
  };
  const check_result result = check_conversion({.from = fp16, .to = e5m2}, kernel, few);
  ASSERT_TRUE(result.failure());
  EXPECT_EQ(result.failure()->input, 0x1234u);
}

TEST(CheckConversion, TheSweepReachesEveryCodeOfItsStride) {
  constexpr std::uint32_t planted = 997u * 3'000'003u;
  const auto kernel = elementwise([](std::uint32_t code) -> std::uint8_t {
    return static_cast<std::uint8_t>(right(code) ^ (code == planted ? 1 : 0));
  });
  const check_effort without{.batches = 0};
  const check_result unseen = check_conversion(to_e4m3, kernel, without);
  EXPECT_TRUE(unseen) << unseen.message();
  const check_result found = check_conversion(to_e4m3, kernel, {.batches = 0, .sweep_stride = 997});
  ASSERT_TRUE(found.failure());
  EXPECT_EQ(found.failure()->input, planted);
  const check_result all =
      check_conversion(to_e4m3, elementwise(right), {.batches = 0, .sweep_stride = 997});
  EXPECT_TRUE(all) << all.message();
  EXPECT_EQ(all.compared(), unseen.compared() + (std::uint64_t{1} << 32) / 997 + 1);
}

TEST(CheckConversion, EveryBackendPassesForOtherPairs) {
  for (const backend_info& backend : compiled_backends()) {
    if (backend.space != memory_space::host || !backend.supported) continue;
    const auto kernel = [&](std::span<const std::uint32_t> in, std::span<std::uint8_t> out) {
      const auto n = static_cast<std::int64_t>(in.size());
      convert(view_of_codes(tf32, in.data(), 1, n), view_of_codes(e8m0, out.data(), 1, n),
              {.rounding = rounding::downward}, find_executor(backend.name));
    };
    const check_result result = check_conversion({tf32, e8m0, {rounding::downward}}, kernel, few);
    EXPECT_TRUE(result) << backend.name << ": " << result.message();
  }
}

TEST(CheckConversion, RefusesArgumentsByName) {
  const auto expect_refused = [](const conversion_under_test& c, const check_effort& effort,
                                 const std::string& named) {
    support::expect_refusal(named, [&] { check_conversion(c, elementwise(right), effort); });
  };
  expect_refused({.from = fp16, .to = e4m3}, {}, "in of the function under test has elements of 4");
  expect_refused({.from = fp32, .to = bf16}, {}, "out of the function under test");
  expect_refused(to_e4m3, {.batches = -1}, "effort.batches");
  expect_refused(to_e4m3, {.batch_size = 0}, "effort.batch_size");
  expect_refused({fp32, e4m3, {rounding::stochastic}, {.bits = 33}}, {}, "random.bits");
  expect_refused({.from = tf32, .to = e4m3}, {.sweep_stride = 1}, "effort.sweep_stride");
}

}  // namespace
}  // namespace samebits::testkit
