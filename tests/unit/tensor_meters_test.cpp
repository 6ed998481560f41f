// The loops of `fpinspect tensor` over elements, against the plainest code that computes the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "fpinspect/tensors/meters/effect_meter.hpp"
#include "fpinspect/tensors/meters/quick_meter.hpp"
#include "fpinspect/tensors/meters/range_meter.hpp"
#include "samebits/reductions.hpp"
#include "samebits/scalar.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;

template <class Value>
class TensorMeters : public testing::Test {};
using value_types = testing::Types<float, double>;
TYPED_TEST_SUITE(TensorMeters, value_types);

template <class Value>
Value of_bits(std::uint64_t bits) {
  if constexpr (sizeof(Value) == 4)
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  else
    return std::bit_cast<double>(bits);
}

/// Kinds of chunks.
enum class content : std::uint8_t { ordinary, any_bits, subnormals, few_bits, zeros };
constexpr content contents[] = {content::ordinary, content::any_bits, content::subnormals,
                                content::few_bits, content::zeros};

template <class Value>
std::vector<Value> values_of(content what, std::size_t count) {
  std::mt19937_64 engine(7 + static_cast<std::uint64_t>(what));
  std::vector<Value> values(count);
  for (Value& x : values) {
    const std::uint64_t bits = engine();
    const auto number = static_cast<Value>(static_cast<double>(bits >> 11) * 0x1p-53);  // [0, 1]
    switch (what) {
      case content::ordinary: x = number - Value{0.5}; break;
      case content::any_bits: x = of_bits<Value>(bits); break;
      case content::subnormals: x = number * std::numeric_limits<Value>::min(); break;
      case content::few_bits: x = std::ldexp(Value{1}, static_cast<int>(bits % 40) - 20); break;
      case content::zeros: x = bits % 3 == 0 ? number : bits % 2 == 0 ? Value{0} : -Value{0}; break;
    }
    if (what != content::any_bits && what != content::few_bits) continue;
    // 65520, 2 - 2^-11 and neighbours: the borders of the counts
    if (bits % 1000 == 0) x = Value{65520};
    if (bits % 1000 == 1) x = std::nextafter(Value{65520}, Value{0});
    if (bits % 1000 == 2) x = Value{1.99951171875};
    if (bits % 1000 == 3) x = std::nextafter(Value{1.99951171875}, Value{0});
  }
  return values;
}

template <class Value>
element_range range_by_definition(std::span<const Value> values) {
  element_range range;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = std::fabs(static_cast<double>(values[i]));
    if (std::isnan(x)) ++range.nan;
    if (std::isinf(x)) ++range.inf;
    if (!std::isfinite(x)) {
      if (!range.first_nonfinite) range.first_nonfinite = i;
      continue;
    }
    range.amax = std::max(range.amax.value_or(0.0), x);
    if (x == 0) {
      ++range.zeros;
      continue;
    }
    range.min_nonzero = std::min(range.min_nonzero.value_or(x), x);
    int exponent = 0;
    const double fraction = 2 * std::frexp(x, &exponent);
    binade_counts& to = range.magnitudes[exponent - 1];
    ++to.all;
    if (fraction == 1) ++to.powers;
    if (fraction >= 2 - 0x1p-11) ++to.top;
  }
  return range;
}

TYPED_TEST(TensorMeters, RangeInAnyParts) {
  constexpr std::size_t columns = 24;
  for (std::size_t i = 0; i < 2 * std::size(contents); ++i) {
    const content what = contents[i / 2];
    const std::size_t first_meter = i % 2;
    std::vector<TypeParam> values = values_of<TypeParam>(what, 5003);
    if (what == content::any_bits) values[0] = std::numeric_limits<TypeParam>::infinity();
    const std::span<const TypeParam> all(values);
    const auto meters = std::make_unique<std::array<range_meter<TypeParam>, 2>>(
        std::array{range_meter<TypeParam>(columns), range_meter<TypeParam>(columns)});
    // Parts from the last to the first, in turn to both meters; one part is empty.
    const std::size_t borders[] = {0, 1, 1, 2001, 4001, values.size()};
    for (std::size_t part = std::size(borders) - 1; part-- > 0;) {
      const std::size_t first = borders[part];
      (*meters)[(part + first_meter) % 2].add(first, all.subspan(first, borders[part + 1] - first));
    }
    (*meters)[0].combine((*meters)[1]);
    const element_range got = (*meters)[0].result();
    const element_range expected = range_by_definition(all);
    EXPECT_EQ(got.zeros, expected.zeros);
    EXPECT_EQ(got.nan, expected.nan);
    EXPECT_EQ(got.inf, expected.inf);
    EXPECT_EQ(got.first_nonfinite, expected.first_nonfinite);
    EXPECT_EQ(got.amax, expected.amax);
    EXPECT_EQ(got.min_nonzero, expected.min_nonzero);
    ASSERT_EQ(got.magnitudes.size(), expected.magnitudes.size());
    for (const auto& [exponent, counts] : expected.magnitudes) {
      ASSERT_TRUE(got.magnitudes.contains(exponent)) << exponent;
      EXPECT_EQ(got.magnitudes.at(exponent).all, counts.all) << exponent;
      EXPECT_EQ(got.magnitudes.at(exponent).powers, counts.powers) << exponent;
      EXPECT_EQ(got.magnitudes.at(exponent).top, counts.top) << exponent;
    }
  }
}

TYPED_TEST(TensorMeters, NoElements) {
  const auto meter = std::make_unique<range_meter<TypeParam>>(0);
  const element_range range = meter->result();
  EXPECT_EQ(range.amax, std::nullopt);
  EXPECT_EQ(range.min_nonzero, std::nullopt);
  EXPECT_TRUE(range.magnitudes.empty());
}

template <class Value>
quick_range quick_range_by_definition(std::span<const Value> values) {
  quick_range range;
  for (const Value value : values) {
    const auto x = static_cast<double>(value);
    if (std::isnan(x)) ++range.nan;
    if (std::isinf(x)) ++range.inf;
    if (!std::isfinite(x)) continue;
    if (x == 0) ++range.zeros;
    range.min = std::min(range.min, x + 0.0);
    range.max = std::max(range.max, x + 0.0);
    if (x != 0) range.min_nonzero = std::min(range.min_nonzero, std::fabs(x));
  }
  return range;
}

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

/// Equal bits. Sums beyond binary64 may be any NaN: they are computed again, of scaled elements.
bool equal_sums(double a, double b) {
  return bits(a) == bits(b) || (std::isnan(a) && std::isnan(b));
}

TYPED_TEST(TensorMeters, QuickRangeAndSums) {
  const auto tree = std::make_unique<chunk_tree>();
  for (const content what : contents) {
    for (const std::size_t count : {0u, 1u, 15u, 16u, 17u, 4095u, 4097u, 32768u}) {
      SCOPED_TRACE(testing::Message() << "content " << static_cast<int>(what) << ", " << count);
      std::vector<TypeParam> values = values_of<TypeParam>(what, count);
      if (what == content::any_bits && count != 0) {
        values[count / 2] = -std::numeric_limits<TypeParam>::infinity();
      }
      const std::span<const TypeParam> all(values);
      const quick_range got = quick_range_of(all);
      const quick_range expected = quick_range_by_definition(all);
      EXPECT_EQ(got.zeros, expected.zeros);
      EXPECT_EQ(got.nan, expected.nan);
      EXPECT_EQ(got.inf, expected.inf);
      if (got.nan + got.inf < count) {
        EXPECT_EQ(bits(got.min), bits(expected.min));
        EXPECT_EQ(bits(got.max), bits(expected.max));
      }
      EXPECT_EQ(got.min_nonzero, expected.min_nonzero);
      for (const int log2 : {0, -3}) {
        samebits::tree_sum sum;
        samebits::tree_sum squares;
        for (const TypeParam value : values) {
          const bool finite = std::isfinite(value);
          const double x = finite ? std::ldexp(static_cast<double>(value), log2) : 0.0;
          sum.add(x);
          squares.add(x * x);
        }
        const quick_sums sums = quick_sums_of(all, got.nan + got.inf == 0, log2, *tree);
        EXPECT_TRUE(equal_sums(sums.sum, sum.value())) << sums.sum;
        EXPECT_TRUE(equal_sums(sums.squares, squares.value())) << sums.squares;
      }
    }
  }
}

/// The value rounded to a format.
template <class Value>
float rounded(format_id to, Value x) {
  constexpr format_id from = sizeof(Value) == 4 ? format_id::fp32 : format_id::fp64;
  const std::uint64_t bits = [x] {
    if constexpr (sizeof(Value) == 4)
      return std::uint64_t{std::bit_cast<std::uint32_t>(x)};
    else
      return std::bit_cast<std::uint64_t>(x);
  }();
  return static_cast<float>(
      samebits::decode_double(to, samebits::convert_code(from, to, bits).code));
}

template <class Value>
format_effect effect_by_definition(format_id to, std::span<const Value> exact) {
  format_effect e{.format = to};
  samebits::tree_sum signal;
  samebits::tree_sum noise;
  const double min_normal = samebits::decode_double(to, samebits::min_normal(to));
  for (const Value value : exact) {
    const auto x = static_cast<double>(value);
    const auto y = static_cast<double>(rounded(to, value));
    const bool some = std::isfinite(x) && x != 0;
    if (some && y == 0) ++e.underflow;
    if (some && y != 0 && std::fabs(y) < min_normal) ++e.subnormal;
    if (std::isfinite(x) &&
        samebits::convert_code(format_id::fp64, to, std::bit_cast<std::uint64_t>(x)).overflow) {
      ++e.overflow;
    }
    if (std::isfinite(x) && std::isinf(y)) ++e.to_inf;
    if (!std::isnan(x) && std::isnan(y)) ++e.to_nan;
    if (!std::isfinite(x) && std::isfinite(y)) ++e.to_max;
    if (x != y && !(std::isnan(x) && std::isnan(y))) ++e.changed;
    const bool paired = std::isfinite(x) && std::isfinite(y);
    signal.add(paired ? x * x : 0.0);
    noise.add(paired ? (x - y) * (x - y) : 0.0);
  }
  e.signal = signal.value();
  e.noise = noise.value();
  return e;
}

TYPED_TEST(TensorMeters, TheSmallestMagnitudeThatOverflows) {
  const auto meter = std::make_unique<effect_meter>();
  for (int f = 0; f < samebits::format_count; ++f) {
    const format_id to = samebits::format_at(f);
    if (to == format_id::fp64 || to == format_id::e8m0) continue;
    const target_format target(to);
    const auto border = static_cast<TypeParam>(target.overflow_start);
    if (!std::isfinite(border)) continue;
    const std::array<TypeParam, 2> values = {TypeParam{0.5}, border};
    const std::array<float, 2> after = {rounded(to, values[0]), rounded(to, values[1])};
    meter->begin(std::span<const TypeParam>(values));
    const format_effect got =
        meter->effect(target, std::span<const TypeParam>(values), std::span<const float>(after));
    EXPECT_EQ(got.overflow, static_cast<double>(border) == target.overflow_start ? 1u : 0u)
        << samebits::name(to);
  }
}

TYPED_TEST(TensorMeters, EffectOfEveryFormat) {
  const auto meter = std::make_unique<effect_meter>();
  for (int f = 0; f < samebits::format_count; ++f) {
    const format_id to = samebits::format_at(f);
    if (to == format_id::fp64 || to == format_id::e8m0) continue;
    const target_format target(to);
    for (const content what : contents) {
      for (const std::size_t count : {0u, 1u, 4099u}) {
        const std::vector<TypeParam> values = values_of<TypeParam>(what, count);
        const std::span<const TypeParam> exact(values);
        std::vector<float> after;
        for (const TypeParam x : values) after.push_back(rounded(to, x));
        meter->begin(exact);
        const format_effect got = meter->effect(target, exact, std::span<const float>(after));
        const format_effect expected = effect_by_definition(to, exact);
        SCOPED_TRACE(testing::Message() << samebits::name(to) << ", content "
                                        << static_cast<int>(what) << ", " << count);
        ASSERT_EQ(got.underflow, expected.underflow);
        ASSERT_EQ(got.subnormal, expected.subnormal);
        ASSERT_EQ(got.overflow, expected.overflow);
        ASSERT_EQ(got.to_inf, expected.to_inf);
        ASSERT_EQ(got.to_nan, expected.to_nan);
        ASSERT_EQ(got.to_max, expected.to_max);
        ASSERT_EQ(got.changed, expected.changed);
        ASSERT_EQ(std::bit_cast<std::uint64_t>(got.signal),
                  std::bit_cast<std::uint64_t>(expected.signal));
        ASSERT_EQ(std::bit_cast<std::uint64_t>(got.noise),
                  std::bit_cast<std::uint64_t>(expected.noise));
      }
    }
  }
}

}  // namespace
}  // namespace fpinspect
