// Tests of shrinking: what a failing case looks like once it is as simple as it gets.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <functional>
#include <random>

#include "oracle/exact.hpp"
#include "support/array_generators.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

/// Follows the first failing shrink as RapidCheck does.
template <class T>
T shrunk(rc::Shrinkable<T> from, const std::function<bool(const T&)>& fails) {
  for (;;) {
    rc::Seq<rc::Shrinkable<T>> simpler = from.shrinks();
    bool found = false;
    for (auto next = simpler.next(); next && !found; next = found ? next : simpler.next()) {
      if (fails(next->value())) {
        from = *next;
        found = true;
      }
    }
    if (!found) return from.value();
  }
}

std::uint64_t shrunk_code(std::uint64_t seed,
                          const std::function<bool(const std::uint64_t&)>& fails) {
  const rc::Gen<std::uint64_t> generator = codes(format_id::fp32, format_id::e4m3);
  rc::Random random(seed);
  for (;;) {
    rc::Shrinkable<std::uint64_t> random_value = generator(random.split());
    if (fails(random_value.value())) return shrunk<std::uint64_t>(random_value, fails);
  }
}

float value(std::uint64_t code) { return std::bit_cast<float>(static_cast<std::uint32_t>(code)); }

TEST(Shrinking, EverythingFailsShrinksToZero) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(shrunk_code(seed, [](std::uint64_t) { return true; }), 0u);
    // Zeros go to +0 directly, and what is no zero to 1.
    EXPECT_EQ(simpler_codes(format_id::fp32, 0x80000000u)[0], 0u);
    EXPECT_EQ(shrunk_code(seed, [](std::uint64_t c) { return c << 33 != 0; }), 0x3F800000u);
  }
}

TEST(Shrinking, BeyondAThresholdShrinksToAPowerOfTwo) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(shrunk_code(seed, [](std::uint64_t c) { return value(c) > 448; }), 0x44000000u);
    EXPECT_EQ(shrunk_code(seed, [](std::uint64_t c) { return value(c) < -448; }), 0xC4000000u);
  }
}

TEST(Shrinking, NeededBitsStay) {
  const auto fails = [](std::uint64_t c) { return c % 16 == 5; };
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(shrunk_code(seed, fails), 0x3F800005u);
  }
}

TEST(Shrinking, NanShrinksToOnePayloadBit) {
  const auto fails = [](std::uint64_t c) { return value(c) != value(c); };
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::uint64_t code = shrunk_code(seed, fails);
    EXPECT_EQ(code >> 23, 0xFFu);
    EXPECT_EQ(std::popcount(code & 0x7FFFFF), 1);
  }
}

TEST(Shrinking, EndsForEveryFormat) {
  std::mt19937_64 engine(1);
  for (const format_id f : all_formats()) {
    for (int i = 0; i < 50; ++i) {
      std::uint64_t code = engine() >> (64 - spec_of(f).storage_bits);
      int steps = 0;
      for (std::vector<std::uint64_t> next; !(next = simpler_codes(f, code)).empty(); ++steps) {
        code = next.back();  // the smallest step there is
        ASSERT_LT(steps, 5000) << name(f);
      }
      const oracle::exact_value last = oracle::decode(oracle_of(f), code);
      const bool has_zero = oracle_of(f).zero != oracle::zeros::none;
      EXPECT_EQ(oracle::rational_of(last), has_zero ? 0 : 1) << name(f);
      EXPECT_FALSE(last.negative) << name(f);
    }
  }
}

TEST(Shrinking, ZerosShrinkToPlusZeroAlone) {
  const std::vector<std::uint64_t> plus_zero{0};
  EXPECT_EQ(simpler_codes(format_id::fp32, 0x80000000), plus_zero);
  EXPECT_EQ(simpler_codes(format_id::e4m3, 0x80), plus_zero);
  EXPECT_TRUE(simpler_codes(format_id::fp32, 0).empty());
}

TEST(Shrinking, ArraysShrinkToTheFailingExtent) {
  const rc::Gen<array_case> generator = array_cases();
  const std::function<bool(const array_case&)> fails = [](const array_case& c) {
    return c.in.cols >= 7 && c.in.rows >= 1;
  };
  rc::Random random(9);
  for (int i = 0; i < 50; ++i) {
    const rc::Shrinkable<array_case> random_value = generator(random.split());
    if (!fails(random_value.value())) continue;
    const array_case c = shrunk<array_case>(random_value, fails);
    EXPECT_EQ(c.in.rows, 1);
    EXPECT_EQ(c.in.cols, 7);
    EXPECT_EQ(c.in.row_stride, 7);
    EXPECT_EQ(c.out.row_stride, 7);
    EXPECT_EQ(c.in.misalignment, 0);
    EXPECT_EQ(c.threads, 1);
    EXPECT_FALSE(c.random.pitch.has_value());
  }
}

TEST(Property, FailureIsReportedWithItsShrunkCase) {
  const auto result = holds("values stay below 448", 4096, [] {
    const conversion_case c = *cases({{format_id::fp32}, {format_id::e4m3}, {rounding::upward}});
    RC_ASSERT(!(value(c.input) > 448));
  });
  ASSERT_FALSE(result);
  const std::string text = result.message();
  EXPECT_NE(text.find("0x44000000"), std::string::npos) << text;
  EXPECT_NE(text.find("RC_PARAMS=\"seed="), std::string::npos) << text;
}

TEST(Property, RunsAsManyCasesAsAsked) {
  int runs = 0;
  EXPECT_TRUE(holds("counts", 4096, [&runs] { ++runs; }));
  EXPECT_EQ(runs, 4096 / static_cast<int>(effort_divisor));
}

}  // namespace
}  // namespace samebits::support
