// Value types: layout, conversions, comparison, numeric_limits, hash and text.
#include "samebits/types.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace samebits {
namespace {

template <class T>
class Types : public ::testing::Test {};
using all_types = ::testing::Types<fp16, bf16, e4m3, e5m2>;
TYPED_TEST_SUITE(Types, all_types);

TYPED_TEST(Types, LieInMemoryAsTheirCodes) {
  using storage = typename TypeParam::storage;
  static_assert(sizeof(TypeParam) == sizeof(storage) && alignof(TypeParam) == alignof(storage));
  static_assert(std::is_trivially_copyable_v<TypeParam> && std::is_standard_layout_v<TypeParam>);
  const std::vector<storage> codes = {0x01, 0x7B, 0x42};
  std::vector<TypeParam> values(3);
  std::memcpy(static_cast<void*>(values.data()), codes.data(), 3 * sizeof(storage));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(values[i].bits(), codes[i]);
}

TYPED_TEST(Types, ConvertExplicitlyOnly) {
  static_assert(!std::is_convertible_v<float, TypeParam> &&
                !std::is_convertible_v<TypeParam, float>);
  static_assert(!std::is_convertible_v<TypeParam, bool> && !std::is_convertible_v<int, TypeParam>);
  EXPECT_EQ(static_cast<float>(TypeParam(1.5f)), 1.5f);
  EXPECT_EQ(static_cast<double>(TypeParam(-0.375)), -0.375);
  EXPECT_EQ(static_cast<float>(TypeParam(12)), 12.0f);
  EXPECT_EQ(static_cast<float>(TypeParam(bf16(24.0f))), 24.0f);
}

TYPED_TEST(Types, CompareAsNumbers) {
  const TypeParam zero(0.0f), minus_zero(-0.0f), one(1.0f),
      nan = std::numeric_limits<TypeParam>::quiet_NaN();
  EXPECT_TRUE(zero == minus_zero);
  EXPECT_NE(zero.bits(), minus_zero.bits());
  EXPECT_TRUE(-one < zero && zero < one && one >= one);
  EXPECT_FALSE(nan == nan);
  EXPECT_FALSE(nan < one || nan >= one);
  EXPECT_EQ((-nan).bits() ^ nan.bits(), (-zero).bits());
  EXPECT_TRUE(static_cast<bool>(one) && static_cast<bool>(nan) && !static_cast<bool>(minus_zero));
}

TYPED_TEST(Types, LimitsFollowTheirDefinitions) {
  using limits = std::numeric_limits<TypeParam>;
  const auto value = [](TypeParam x) { return static_cast<double>(x); };
  EXPECT_EQ(value(limits::min()), std::ldexp(1.0, limits::min_exponent - 1));
  EXPECT_EQ(value(limits::epsilon()), std::ldexp(1.0, 1 - limits::digits));
  EXPECT_EQ(value(limits::denorm_min()), std::ldexp(value(limits::min()), 1 - limits::digits));
  EXPECT_LT(value(limits::max()), std::ldexp(1.0, limits::max_exponent));
  EXPECT_GE(value(limits::max()), std::ldexp(1.0, limits::max_exponent - 1));
  EXPECT_EQ(value(limits::lowest()), -value(limits::max()));
  EXPECT_EQ(value(limits::round_error()), 0.5);
  EXPECT_TRUE(std::isnan(value(limits::quiet_NaN())));
  EXPECT_EQ(std::isinf(value(limits::infinity())), limits::has_infinity);
  // The decimal members, from their definitions in [numeric.limits.members].
  EXPECT_EQ(limits::digits10, static_cast<int>(std::floor((limits::digits - 1) * std::log10(2.0))));
  EXPECT_EQ(limits::max_digits10,
            static_cast<int>(std::ceil(limits::digits * std::log10(2.0) + 1)));
  EXPECT_EQ(limits::min_exponent10, static_cast<int>(std::ceil(std::log10(value(limits::min())))));
  EXPECT_EQ(limits::max_exponent10, static_cast<int>(std::floor(std::log10(value(limits::max())))));
}

TEST(TypesLimits, AreTheTablesOfTheFormats) {
  EXPECT_EQ(std::numeric_limits<e4m3>::max().bits(), 0x7E);
  EXPECT_EQ(std::numeric_limits<e5m2>::max().bits(), 0x7B);
  EXPECT_EQ(std::numeric_limits<fp16>::infinity().bits(), 0x7C00);
  EXPECT_EQ(std::numeric_limits<bf16>::quiet_NaN().bits(), 0x7FFF);
  static_assert(std::numeric_limits<fp16>::is_iec559 && !std::numeric_limits<bf16>::is_iec559);
}

TYPED_TEST(Types, HashEqualValuesAlike) {
  const std::hash<TypeParam> hash;
  EXPECT_EQ(hash(TypeParam(0.0f)), hash(TypeParam(-0.0f)));
  EXPECT_NE(hash(TypeParam(1.0f)), hash(TypeParam(2.0f)));
  std::unordered_set<TypeParam> set = {TypeParam(1.0f), TypeParam(1.0f), TypeParam(0.0f),
                                       TypeParam(-0.0f)};
  EXPECT_EQ(set.size(), 2u);
}

TYPED_TEST(Types, PrintTheirShortestText) {
  std::ostringstream out;
  out << TypeParam(0.25f) << ' ' << TypeParam(-448.0f) << ' ' << TypeParam(-0.0f);
  EXPECT_EQ(out.str(), "0.25 -448 -0");
  EXPECT_EQ(to_string(TypeParam(0.3f)), "0.3");
}

TEST(TypesConversion, RoundOnceBetweenEachOther) {
  EXPECT_EQ(e4m3(fp16(464.0f)).bits(), 0x7E);
  EXPECT_EQ(bf16(e5m2(1.75f)).bits(), 0x3FE0);
  constexpr e4m3 compile_time(0.3f);
  static_assert(compile_time.bits() == 0x2A);
}

}  // namespace
}  // namespace samebits
