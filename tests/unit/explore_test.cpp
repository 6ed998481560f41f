// `fpinspect range`, `resolution`, `table` and `demo`: their figures against counting all codes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "fpinspect/explore/demos/demos.hpp"
#include "fpinspect/explore/range.hpp"
#include "fpinspect/explore/resolution.hpp"
#include "fpinspect/explore/table.hpp"
#include "samebits/scalar.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::operation;

constexpr std::array narrow_formats = {
    format_id::fp16, format_id::bf16, format_id::e4m3,     format_id::e5m2,     format_id::e3m2,
    format_id::e2m3, format_id::e2m1, format_id::e4m3fnuz, format_id::e5m2fnuz, format_id::e8m0};

struct coded_value {
  double value;
  std::uint64_t code;
};

/// All finite values >= 0 in rising order; +0 but not -0.
std::vector<coded_value> values_of(format_id format) {
  std::vector<coded_value> all;
  const int bits = samebits::spec_of(format).storage_bits;
  for (std::uint64_t code = 0; code < std::uint64_t{1} << bits; ++code) {
    if (!samebits::is_finite(format, code)) continue;
    const double value = samebits::decode_double(format, code);
    if (value < 0 || std::signbit(value)) continue;
    const bool there =
        std::any_of(all.begin(), all.end(), [&](const coded_value& v) { return v.value == value; });
    if (bits > 8 || !there) all.push_back({value, code});
  }
  std::sort(all.begin(), all.end(),
            [](const coded_value& a, const coded_value& b) { return a.value < b.value; });
  return all;
}

std::uint64_t nearest_code(format_id format, double x) {
  return samebits::convert_code(format_id::fp64, format, std::bit_cast<std::uint64_t>(x)).code;
}

TEST(ExploreRange, LimitsAreThoseOfAllCodes) {
  for (const format_id format : narrow_formats) {
    const std::vector<coded_value> values = values_of(format);
    const double smallest = values.front().value == 0 ? values[1].value : values.front().value;
    const decade_range range = decade_range_of(format);
    EXPECT_EQ(range.format, format);
    EXPECT_DOUBLE_EQ(range.minimum, std::log10(smallest)) << samebits::name(format);
    EXPECT_DOUBLE_EQ(range.maximum, std::log10(values.back().value)) << samebits::name(format);
  }
}

TEST(ExploreRange, AxisHasTheNarrowestColumnsThatFit) {
  const std::array steps = {0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0};
  for (const format_id format : narrow_formats) {
    const std::array ranges = {decade_range_of(format)};
    for (const int room : {10, 42, 100}) {
      const decade_axis axis = decade_axis_of(ranges, room);
      SCOPED_TRACE(testing::Message() << samebits::name(format) << " in " << room);
      EXPECT_LE(axis.columns, room);
      EXPECT_LE(axis.first, ranges[0].minimum);
      EXPECT_GE(axis.start(axis.columns), ranges[0].maximum);
      EXPECT_LT(axis.start(axis.columns - 1), ranges[0].maximum);
      const auto step = std::find(steps.begin(), steps.end(), axis.step);
      ASSERT_NE(step, steps.end()) << axis.step;
      if (step == steps.begin()) continue;
      const double finer = *(step - 1);
      const double needed =
          std::floor(ranges[0].maximum / finer) - std::floor(ranges[0].minimum / finer) + 1;
      EXPECT_GT(needed, room);
    }
  }
}

TEST(ExploreRange, BandsAreTheKindsOfValuesInEachColumn) {
  // Columns of a decade or more contain values of all kinds that their range has.
  for (const format_id format : {format_id::fp16, format_id::bf16, format_id::e5m2}) {
    const decade_range range = decade_range_of(format);
    const decade_axis axis = {std::floor(range.minimum) - 2, 1.0,
                              static_cast<int>(range.maximum - range.minimum) + 6};
    const std::vector<column_band> bands = bands_of(range, axis);
    ASSERT_EQ(bands.size(), static_cast<std::size_t>(axis.columns));
    const double min_normal = samebits::decode_double(format, samebits::min_normal(format));
    std::vector<bool> normal(bands.size());
    std::vector<bool> subnormal(bands.size());
    for (const auto& [value, code] : values_of(format)) {
      if (value == 0) continue;
      const auto column = static_cast<std::size_t>(std::floor(std::log10(value) - axis.first));
      (value < min_normal ? subnormal : normal)[column] = true;
    }
    for (std::size_t i = 0; i < bands.size(); ++i) {
      const column_band expected = normal[i] && subnormal[i] ? column_band::both
                                   : normal[i]               ? column_band::normal
                                   : subnormal[i]            ? column_band::subnormal
                                                             : column_band::none;
      EXPECT_EQ(bands[i], expected) << samebits::name(format) << ", column " << i;
    }
  }
}

TEST(ExploreResolution, ValuesOfAnIntervalAreThoseOfAllCodes) {
  for (const format_id format : narrow_formats) {
    const std::vector<coded_value> values = values_of(format);
    const double largest = values.back().value;
    for (const auto& [from, to] : {std::pair(1.0, 2.0), {0.0, largest}, {0.3, 5.5}, {0.0, 1.0}}) {
      const interval_values got = values_between(format, from, to);
      SCOPED_TRACE(testing::Message() << samebits::name(format) << " in [" << from << ", " << to);
      std::vector<coded_value> expected;
      for (const coded_value& v : values) {
        if (v.value >= from && v.value < to) expected.push_back(v);
      }
      ASSERT_EQ(got.count, expected.size());
      if (expected.empty()) continue;
      EXPECT_EQ(got.first_code, expected.front().code);
      std::size_t at = 0;
      for (const even_values& even : got.spacings) {
        ASSERT_LE(at + even.count, expected.size());
        EXPECT_EQ(even.first, expected[at].value);
        for (std::uint64_t k = 0; k < even.count; ++k, ++at) {
          const double value =
              even.first + static_cast<double>(k) * std::ldexp(1, even.spacing_log2);
          if (format == format_id::e8m0) continue;
          ASSERT_EQ(expected[at].value, value);
        }
        EXPECT_EQ(even.last, expected[at - 1].value);
      }
      EXPECT_EQ(at, expected.size());
    }
  }
}

TEST(ExploreResolution, LargestExactInteger) {
  for (const format_id format : narrow_formats) {
    double n = 0;
    while (samebits::decode_double(format, nearest_code(format, n + 1)) == n + 1) ++n;
    EXPECT_EQ(largest_exact_integer(format), n) << samebits::name(format);
  }
  EXPECT_EQ(largest_exact_integer(format_id::fp32), 0x1p24);
  EXPECT_EQ(largest_exact_integer(format_id::fp64), 0x1p53);
}

TEST(ExploreResolution, NeighboursOfANumber) {
  for (const format_id format : narrow_formats) {
    const std::vector<coded_value> values = values_of(format);
    for (const double x : {0.3, 1.0, 1.7, 2.0, 3.0, 5.9, values.back().value}) {
      const auto got = spot_of(format, x);
      SCOPED_TRACE(testing::Message() << samebits::name(format) << " at " << x);
      if (x < values.front().value || x > values.back().value) {
        EXPECT_FALSE(got);
        continue;
      }
      ASSERT_TRUE(got);
      const auto above =
          std::lower_bound(values.begin(), values.end(), x,
                           [](const coded_value& v, double y) { return v.value < y; });
      const auto below = above->value == x ? above : above - 1;
      EXPECT_EQ(got->above, above->code);
      EXPECT_EQ(got->below, below->code);
      EXPECT_EQ(got->nearest, nearest_code(format, x));
      const bool last = below + 1 == values.end();
      ASSERT_EQ(got->spacing_log2.has_value(), !last);
      if (last) continue;
      EXPECT_EQ(std::ldexp(1, *got->spacing_log2), (below + 1)->value - below->value);
    }
  }
}

TEST(ExploreResolution, RoundedPoints) {
  for (const format_id format : {format_id::e4m3, format_id::e5m2, format_id::fp16}) {
    for (const std::uint64_t points : {1u, 7u, 1000u}) {
      const rounded_points got = round_points(format, 1.0, 17.0, points);
      std::set<std::uint64_t> codes;
      double largest = 0;
      double sum = 0;
      for (std::uint64_t i = 0; i < points; ++i) {
        const double x = 1.0 + 16.0 * static_cast<double>(i) / static_cast<double>(points);
        codes.insert(nearest_code(format, x));
        const double error =
            std::fabs(samebits::decode_double(format, nearest_code(format, x)) - x);
        largest = std::max(largest, error);
        sum += error;
      }
      EXPECT_EQ(got.points, points);
      EXPECT_EQ(got.distinct, codes.size());
      EXPECT_EQ(got.max_error, largest);
      EXPECT_NEAR(got.mean_error, sum / static_cast<double>(points), 1e-12);
    }
  }
}

/// The exact result in binary64 of an operation that is exact there for 8-bit operands.
double exact_result(operation op, double a, double b) {
  return op == operation::add ? a + b : op == operation::sub ? a - b : a * b;
}

TEST(ExploreTable, AllPairsOfCodes) {
  for (const format_id format : {format_id::e4m3, format_id::e5m2}) {
    for (const operation op : {operation::add, operation::sub, operation::mul}) {
      const operation_table table = table_of(op, format, {});
      ASSERT_EQ(table.columns, table_codes);
      ASSERT_EQ(table.results.size(), table_codes * table_codes);
      table_summary expected;
      std::set<std::uint8_t> codes(table.results.begin(), table.results.end());
      for (std::size_t a = 0; a < table_codes; ++a) {
        for (std::size_t b = 0; b < table_codes; ++b) {
          const double exact = exact_result(op, samebits::decode_double(format, a),
                                            samebits::decode_double(format, b));
          const std::uint8_t code = table.result(a, b);
          const double value = samebits::decode_double(format, code);
          if (std::isnan(exact)) {
            ASSERT_TRUE(std::isnan(value)) << a << " " << b;
          } else {
            ASSERT_EQ(code, nearest_code(format, exact)) << a << " " << b;
          }
          const bool same = code == table.result(b, a);
          expected.asymmetric += same ? 0u : 1u;
          if (std::isnan(value)) ++expected.nan;
          if (std::isinf(value)) ++expected.infinite;
          if (value == 0) ++expected.zero;
        }
      }
      const table_summary got = summary_of(table);
      EXPECT_EQ(got.nan, expected.nan);
      EXPECT_EQ(got.infinite, expected.infinite);
      EXPECT_EQ(got.zero, expected.zero);
      EXPECT_EQ(got.distinct, codes.size());
      EXPECT_EQ(got.asymmetric, expected.asymmetric);
      EXPECT_EQ(got.zero + got.subnormal + got.normal + got.infinite + got.nan,
                table.results.size());
    }
  }
}

std::optional<format_id> format_of(const demo_table::cell& cell) {
  return samebits::find_format(std::get<std::string>(cell));
}

TEST(ExploreDemo, EachTableHasACellForEachColumn) {
  ASSERT_EQ(demos().size(), 5u);
  for (const demo& one : demos()) {
    const demo_table table = one.run();
    EXPECT_FALSE(table.rows.empty()) << one.name;
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size()) << one.name;
  }
}

TEST(ExploreDemo, SumsOfOnesStopAtTheLargestExactInteger) {
  for (const auto& row : repeated_sum().rows) {
    const format_id format = *format_of(row[0]);
    if (std::get<double>(row[1]) != 1.0) continue;
    EXPECT_EQ(std::get<double>(row[3]), std::min(1e4, largest_exact_integer(format)))
        << samebits::name(format);
  }
}

TEST(ExploreDemo, TheLossScaleSavesOnlySplitFactorsInFp16) {
  for (const auto& row : grad_once().rows) {
    const bool fp16 = format_of(row[0]) == format_id::fp16;
    const bool split = std::get<std::string>(row[1]) == "1e-4, 1e-4";
    const bool scaled = std::get<double>(row[2]) != 1.0;
    EXPECT_EQ(std::get<double>(row[5]) == 0, fp16 && !(split && scaled));
  }
}

TEST(ExploreDemo, VarianceInTwoPassesIsCloser) {
  for (const double mean : {0.0, 100.0, 10000.0}) {
    const variance_case got = variance_of_case(mean);
    EXPECT_NEAR(got.exact, 1.0 / 3.0, 0.02);  // of uniform numbers in [-1, 1)
    EXPECT_LT(std::fabs(got.two_pass - got.exact), 1e-3 * got.exact);
    const bool worse = std::fabs(got.one_pass - got.exact) > std::fabs(got.two_pass - got.exact);
    EXPECT_TRUE(worse || mean == 0) << mean;
  }
}

}  // namespace
}  // namespace fpinspect
