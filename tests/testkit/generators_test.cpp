// Tests of the generators: they cover the promised values and shrink to the simplest one.
#include "samebits/testkit/generators.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "samebits/scalar.hpp"
#include "samebits/testkit/oracle.hpp"

namespace samebits::testkit {
namespace {

/// Returns the end of shrinking if every case fails.
template <class T>
T plainest(const rc::Gen<T>& generator) {
  rc::Shrinkable<T> now = generator(rc::Random(7));
  for (;;) {
    rc::Seq<rc::Shrinkable<T>> simpler = now.shrinks();
    auto first = simpler.next();
    if (!first) return now.value();
    now = *first;
  }
}

TEST(KitGenerators, CodesComeInTheFormatsWordAndHitTies) {
  static_assert(std::is_same_v<decltype(codes<format_id::bf16>()), rc::Gen<std::uint16_t>>);
  const rc::Gen<std::uint32_t> generator = codes<format_id::fp32>(format_id::e4m3);
  rc::Random random(3);
  int ties = 0, nans = 0, subnormals = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::uint32_t code = generator(random.split()).value();
    const number_class kind = classify(format_id::fp32, code);
    nans += kind == number_class::nan;
    subnormals += kind == number_class::subnormal;
    if (kind == number_class::nan) continue;
    const auto even = convert_code<format_id::e4m3, format_id::fp32>(code);
    const auto away =
        convert_code<format_id::e4m3, format_id::fp32>(code, {rounding::nearest_away});
    ties += even != away;
  }
  EXPECT_GT(ties, 50);
  EXPECT_GT(nans, 50);
  EXPECT_GT(subnormals, 20);
  EXPECT_EQ(plainest(generator), 0u) << "+0 is the simplest code";
}

TEST(KitGenerators, RulesAndOptionsCoverEveryEnumeratorAndShrinkToTheDefaults) {
  std::set<rounding> modes;
  std::set<int> widths;
  rc::Random random(5);
  for (int i = 0; i < 1000; ++i) {
    modes.insert(rules()(random.split()).value().rounding);
    widths.insert(options()(random.split()).value().random.bits);
  }
  EXPECT_EQ(modes.size(), static_cast<std::size_t>(enum_count<rounding>));
  EXPECT_EQ(widths.size(), 32u);
  EXPECT_EQ(plainest(rules()), cast_rule{});
  const convert_options o = plainest(options());
  EXPECT_EQ(o.rounding, rounding::nearest_even);
  EXPECT_EQ(o.random.seed + o.random.stream + o.random.offset, 0u);
  EXPECT_EQ(o.random.bits, 32);
  EXPECT_FALSE(o.random.pitch);
}

TEST(KitGenerators, CasesViewsAndOracleAreReachable) {
  expect_holds("convert agrees with the oracle", 200, [] {
    const conversion_case c = *cases(whole_space());
    require(
        same_code(c, convert_code(c.from, c.to, c.input, c.rule, c.random).code, expected_code(c)));
    const array_case a = *array_cases();
    strided_buffer buffer(a.to, a.out);
    RC_ASSERT(buffer.guards_are_intact());
    RC_ASSERT(oracle::format_named("e4m3").max_finite == 0x7Eu);
  });
}

}  // namespace
}  // namespace samebits::testkit
