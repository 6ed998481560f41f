// Statistics of casts by the plainest code: implementation.
#include "cast_statistics_definition.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <random>
#include <string>

#include "samebits/scalar.hpp"

namespace samebits::plain_statistics {
namespace {

bool is_finite_number(double x) { return std::isfinite(x); }

/// A number beside the one from which a target overflows or underflows, or beside 2^k(2 - 2^-11).
double border(std::uint64_t draw) {
  const std::vector<format_id> targets = all_targets();
  const format_id to = targets[draw % targets.size()];
  const double largest = decode_double(to, max_finite(to));
  const double second = decode_double(to, max_finite(to) - (1u << spec_of(to).padding_bits));
  const double smallest = decode_double(to, std::uint64_t{1} << spec_of(to).padding_bits);
  const double at[] = {largest + (largest - second) / 2, largest, smallest / 2,
                       decode_double(to, min_normal(to)),
                       std::ldexp(2 - 0x1p-11, static_cast<int>(draw % 30))};
  const double x = at[draw / 16 % 5];
  const double beside[] = {x, std::nextafter(x, 0.0), std::nextafter(x, 1e308),
                           static_cast<double>(std::nextafter(static_cast<float>(x), 0.0f)),
                           static_cast<double>(std::nextafter(static_cast<float>(x), 1e38f))};
  return (draw / 256 % 2 == 0 ? 1 : -1) * beside[draw / 512 % 5];
}

/// The sum over the tree of contract §6.
double tree(std::vector<double> x) {
  if (x.empty()) return 0;
  while (x.size() > 1) {
    std::vector<double> level;
    for (std::size_t i = 0; i < x.size(); i += 2) {
      level.push_back(i + 1 < x.size() ? x[i] + x[i + 1] : x[i]);
    }
    x = level;
  }
  return x[0];
}

template <class Function>
double tree_of(const std::vector<double>& x, const Function& f) {
  std::vector<double> inputs;
  for (const double one : x) inputs.push_back(std::isfinite(one) ? f(one) : 0.0);
  return tree(inputs);
}

cast_effect effect_by_definition(format_id to, const std::vector<double>& elements,
                                 overflow policy) {
  cast_effect e{.format = to};
  std::vector<double> signal;
  std::vector<double> noise;
  const double smallest_normal = decode_double(to, min_normal(to));
  for (const double x : elements) {
    const converted result = convert_code(format_id::fp64, to, bits(x), {.overflow = policy});
    const double y = decode_double(to, result.code);
    const bool some = std::isfinite(x) && x != 0;
    if (some && y == 0) ++e.underflow;
    if (some && y != 0 && std::fabs(y) < smallest_normal) ++e.subnormal;
    if (std::isfinite(x) && result.overflow) ++e.overflow;
    if (std::isfinite(x) && std::isinf(y)) ++e.to_inf;
    if (!std::isnan(x) && std::isnan(y)) ++e.to_nan;
    if (!std::isfinite(x) && std::isfinite(y)) ++e.to_max;
    if (x != y && !(std::isnan(x) && std::isnan(y))) ++e.changed;
    const bool paired = std::isfinite(x) && std::isfinite(y);
    signal.push_back(paired ? x * x : 0.0);
    noise.push_back(paired ? (x - y) * (x - y) : 0.0);
  }
  e.signal = tree(signal);
  e.noise = tree(noise);
  return e;
}

double amax_of(const std::vector<double>& x) {
  double amax = -1;
  for (const double one : x) {
    if (std::isfinite(one)) amax = std::max(amax, std::fabs(one));
  }
  return amax;
}

/// Equal bits; a NaN sum is the canonical one.
void expect_equal(double got, double expected, const char* what) {
  if (std::isnan(expected)) expected = std::bit_cast<double>(0x7FFFFFFFFFFFFFFFu);
  EXPECT_EQ(bits(got), bits(expected)) << what << ": " << got << ", expected " << expected;
}
void expect_equal(const std::optional<double>& got, const std::optional<double>& expected,
                  const char* what) {
  ASSERT_EQ(got.has_value(), expected.has_value()) << what;
  if (got) expect_equal(*got, *expected, what);
}
void expect_equal(const std::vector<double>& got, const std::vector<double>& expected,
                  const char* what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) expect_equal(got[i], expected[i], what);
}

void expect_equal(const cast_effect& got, const cast_effect& expected) {
  SCOPED_TRACE(std::string(name(expected.format)));
  EXPECT_EQ(got.format, expected.format);
  for (const auto count :
       {&cast_effect::underflow, &cast_effect::subnormal, &cast_effect::overflow,
        &cast_effect::to_inf, &cast_effect::to_nan, &cast_effect::to_max, &cast_effect::changed}) {
    EXPECT_EQ(got.*count, expected.*count);
  }
  expect_equal(got.signal, expected.signal, "signal");
  expect_equal(got.noise, expected.noise, "noise");
  expect_equal(got.saturated_signal, expected.saturated_signal, "saturated_signal");
  expect_equal(got.saturated_noise, expected.saturated_noise, "saturated_noise");
}

}  // namespace

std::uint64_t code_of(format_id format, double x) {
  return convert_code(format_id::fp64, format, bits(x)).code;
}

std::vector<format_id> all_targets() {
  std::vector<format_id> formats;
  for (int i = 0; i < format_count; ++i) {
    const format_id f = format_at(i);
    if (f != format_id::fp64 && f != format_id::e8m0) formats.push_back(f);
  }
  return formats;
}

matrix draw(content what, format_id format, std::int64_t rows, std::int64_t cols) {
  std::mt19937_64 engine(7 + static_cast<std::uint64_t>(what));
  matrix m{format, rows, cols};
  for (std::size_t i = 0; i < m.size(); ++i) {
    const std::uint64_t word = engine();
    const double number = static_cast<double>(word >> 11) * 0x1p-53 - 0.5;
    switch (what) {
      case content::any_bits: m.codes.push_back(word >> (64 - spec_of(format).storage_bits)); break;
      case content::ordinary: m.codes.push_back(code_of(format, number)); break;
      case content::subnormal:
        m.codes.push_back(code_of(format, number * 2 * decode_double(format, min_normal(format))));
        break;
      case content::borders: m.codes.push_back(code_of(format, border(word))); break;
      case content::few_values:
        m.codes.push_back(
            code_of(format, std::ldexp(word % 2 == 0 ? 1 : -1, static_cast<int>(word / 2 % 3))));
        break;
      case content::zeros: m.codes.push_back(code_of(format, word % 2 == 0 ? 0.0 : -0.0)); break;
      case content::nan:
        m.codes.push_back(code_of(format, std::numeric_limits<double>::quiet_NaN()));
        break;
    }
  }
  return m;
}

cast_statistics by_definition(const matrix& m, const statistics_request& request) {
  std::vector<double> x;
  for (const std::uint64_t code : m.codes) x.push_back(decode_double(m.format, code));
  std::vector<double> finite;
  std::copy_if(x.begin(), x.end(), std::back_inserter(finite), is_finite_number);
  cast_statistics s;
  s.count = x.size();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == 0) ++s.zeros;
    if (std::isnan(x[i])) ++s.nan;
    if (std::isinf(x[i])) ++s.inf;
    if (!std::isfinite(x[i]) && !s.first_nonfinite) s.first_nonfinite = i;
  }
  for (double& one : finite) {
    one += 0.0;
    if (one == 0) continue;
    s.min_nonzero = std::min(s.min_nonzero.value_or(std::fabs(one)), std::fabs(one));
    int exponent = 0;
    const double fraction = 2 * std::frexp(std::fabs(one), &exponent);
    s.binades[exponent - 1].add({1, fraction == 1 ? 1u : 0u, fraction >= 2 - 0x1p-11 ? 1u : 0u});
  }
  std::sort(finite.begin(), finite.end());
  const auto count = static_cast<double>(finite.size());
  int log2 = 0;
  if (!finite.empty()) {
    s.min = finite.front();
    s.max = finite.back();
    s.amax = amax_of(finite);
    if (*s.amax != 0 && (*s.amax < 0x1p-500 || *s.amax >= 0x1p500)) log2 = -std::ilogb(*s.amax);
  }
  const auto scaled = [&](double one) { return std::ldexp(one, log2); };
  const double sum = tree_of(x, scaled);
  const double squares = tree_of(x, [&](double one) { return scaled(one) * scaled(one); });
  s.sum = tree_of(x, [](double one) { return one; });
  s.squares = tree_of(x, [](double one) { return one * one; });
  s.l1_norm = std::ldexp(tree_of(x, [&](double one) { return std::fabs(scaled(one)); }), -log2);
  s.l2_norm = std::ldexp(std::sqrt(squares), -log2);
  if (!finite.empty()) {
    const double mean = sum / count;
    s.mean = std::ldexp(mean, -log2);
    s.rms = std::ldexp(std::sqrt(squares / count), -log2);
    const double deviations =
        tree_of(x, [&](double one) { return (scaled(one) - mean) * (scaled(one) - mean); });
    s.std = std::ldexp(std::sqrt(deviations / count), -log2);
    for (const int p : percentages) {
      const auto exceed = static_cast<std::size_t>(std::ceil(p * count / 100));
      s.percentiles.push_back(finite[std::max<std::size_t>(exceed, 1) - 1]);
    }
  }
  const auto cols = static_cast<std::size_t>(m.cols);
  for (std::size_t r = 0; r < static_cast<std::size_t>(m.rows); ++r) {
    const auto row = x.begin() + static_cast<std::ptrdiff_t>(r * cols);
    s.row_amax.push_back(amax_of({row, row + m.cols}));
  }
  for (std::size_t c = 0; c < cols; ++c) {
    std::vector<double> column;
    for (std::size_t i = c; i < x.size(); i += cols) column.push_back(x[i]);
    s.column_amax.push_back(amax_of(column));
  }
  if (request.scale_log2 != 0) {  // products stay numbers
    for (double& one : x) {
      const double product = std::ldexp(one, request.scale_log2);
      if (std::isfinite(one) && std::isinf(product)) {
        one = std::copysign(std::numeric_limits<double>::max(), one);
      } else if (one != 0 && product == 0) {
        one = std::copysign(std::numeric_limits<double>::denorm_min(), one);
      } else {
        one = product;
      }
    }
  }
  for (const format_id to : request.casts) {
    cast_effect e = effect_by_definition(to, x, overflow::ieee);
    const cast_effect saturated = effect_by_definition(to, x, overflow::saturate);
    e.saturated_signal = saturated.signal;
    e.saturated_noise = saturated.noise;
    s.casts.push_back(e);
  }
  return s;
}

void expect_equal(const cast_statistics& got, const cast_statistics& expected) {
  EXPECT_EQ(got.count, expected.count);
  EXPECT_EQ(got.zeros, expected.zeros);
  EXPECT_EQ(got.nan, expected.nan);
  EXPECT_EQ(got.inf, expected.inf);
  EXPECT_EQ(got.first_nonfinite, expected.first_nonfinite);
  expect_equal(got.min, expected.min, "min");
  expect_equal(got.max, expected.max, "max");
  expect_equal(got.amax, expected.amax, "amax");
  expect_equal(got.min_nonzero, expected.min_nonzero, "min_nonzero");
  EXPECT_TRUE(got.binades == expected.binades) << "binades";
  expect_equal(got.sum, expected.sum, "sum");
  expect_equal(got.squares, expected.squares, "squares");
  expect_equal(got.mean, expected.mean, "mean");
  expect_equal(got.rms, expected.rms, "rms");
  expect_equal(got.l1_norm, expected.l1_norm, "l1_norm");
  expect_equal(got.l2_norm, expected.l2_norm, "l2_norm");
  expect_equal(got.std, expected.std, "std");
  expect_equal(got.percentiles, expected.percentiles, "percentiles");
  expect_equal(got.row_amax, expected.row_amax, "row_amax");
  expect_equal(got.column_amax, expected.column_amax, "column_amax");
  ASSERT_EQ(got.casts.size(), expected.casts.size());
  for (std::size_t i = 0; i < got.casts.size(); ++i) expect_equal(got.casts[i], expected.casts[i]);
}

}  // namespace samebits::plain_statistics
