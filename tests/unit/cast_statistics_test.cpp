// Statistics of casts against the plainest code that computes the same, from single codes.
#include "samebits/cast_statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "samebits/error.hpp"
#include "samebits/scalar.hpp"

namespace samebits {
namespace {

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
bool is_finite_number(double x) { return std::isfinite(x); }

/// A dense matrix of codes.
struct matrix {
  format_id format;
  std::int64_t rows;
  std::int64_t cols;
  std::vector<std::uint64_t> codes = {};

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(rows * cols); }
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(storage_bytes(format));
  }
  [[nodiscard]] std::vector<std::byte> memory() const {
    std::vector<std::byte> all(codes.size() * bytes());
    for (std::size_t i = 0; i < codes.size(); ++i) {
      std::memcpy(all.data() + i * bytes(), &codes[i], bytes());
    }
    return all;
  }
};

enum class content : std::uint8_t {
  any_bits,
  ordinary,
  subnormal,
  borders,
  few_values,
  zeros,
  nan
};
constexpr content contents[] = {content::any_bits, content::ordinary,   content::subnormal,
                                content::borders,  content::few_values, content::zeros,
                                content::nan};

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

/// Everything, from the definitions in the header.
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
  EXPECT_EQ(got.underflow, expected.underflow);
  EXPECT_EQ(got.subnormal, expected.subnormal);
  EXPECT_EQ(got.overflow, expected.overflow);
  EXPECT_EQ(got.to_inf, expected.to_inf);
  EXPECT_EQ(got.to_nan, expected.to_nan);
  EXPECT_EQ(got.to_max, expected.to_max);
  EXPECT_EQ(got.changed, expected.changed);
  expect_equal(got.signal, expected.signal, "signal");
  expect_equal(got.noise, expected.noise, "noise");
  expect_equal(got.saturated_signal, expected.saturated_signal, "saturated_signal");
  expect_equal(got.saturated_noise, expected.saturated_noise, "saturated_noise");
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

statistics_request everything(std::vector<format_id> casts) {
  return {.casts = std::move(casts),
          .binades = true,
          .sums = true,
          .l1_norm = true,
          .std = true,
          .row_amax = true,
          .column_amax = true,
          .percentiles = true};
}

TEST(CastStatistics, EveryFormatToEveryFormat) {
  const statistics_request request = everything(all_targets());
  for (int f = 0; f < format_count; ++f) {
    for (const content what : contents) {
      SCOPED_TRACE(std::string(name(format_at(f))) + ", content " +
                   std::to_string(static_cast<int>(what)));
      const matrix m = draw(what, format_at(f), 29, 31);
      const std::vector<std::byte> memory = m.memory();
      expect_equal(statistics_of(view_of_codes(m.format, memory.data(), m.rows, m.cols), request),
                   by_definition(m, request));
    }
  }
}

TEST(CastStatistics, SmallMatrices) {
  const statistics_request request = everything({format_id::e4m3});
  for (const auto& [rows, cols] : {std::pair{0, 0}, {0, 5}, {5, 0}, {1, 1}, {1, 2}, {3, 1}}) {
    const matrix m = draw(content::any_bits, format_id::fp32, rows, cols);
    const std::vector<std::byte> memory = m.memory();
    expect_equal(statistics_of(view_of_codes(m.format, memory.data(), rows, cols), request),
                 by_definition(m, request));
  }
}

/// Few numbers are selected, many are counted.
TEST(CastStatistics, PercentilesOfAnyNumberOfElements) {
  const statistics_request request = everything({});
  for (const format_id format : {format_id::fp64, format_id::fp32, format_id::fp16, format_id::bf16,
                                 format_id::e5m2, format_id::e8m0}) {
    for (const std::int64_t cols : {99, 101, 4096, 4097, 20000}) {
      for (const content what : contents) {
        SCOPED_TRACE(std::string(name(format)) + ", " + std::to_string(2 * cols) + ", content " +
                     std::to_string(static_cast<int>(what)));
        const matrix m = draw(what, format, 2, cols);
        const std::vector<std::byte> memory = m.memory();
        expect_equal(statistics_of(view_of_codes(format, memory.data(), 2, cols), request),
                     by_definition(m, request));
      }
    }
  }
}

TEST(CastStatistics, ScaledCasts) {
  for (const format_id format : {format_id::fp64, format_id::fp32, format_id::bf16}) {
    for (const int log2 : {-127, -3, 1, 16, 127}) {
      statistics_request request = everything({format_id::fp32, format_id::fp16, format_id::e5m2});
      request.scale_log2 = log2;
      for (const content what : {content::any_bits, content::borders, content::ordinary}) {
        SCOPED_TRACE(std::string(name(format)) + " * 2^" + std::to_string(log2));
        const matrix m = draw(what, format, 17, 23);
        const std::vector<std::byte> memory = m.memory();
        expect_equal(statistics_of(view_of_codes(format, memory.data(), 17, 23), request),
                     by_definition(m, request));
      }
    }
  }
}

/// Amaxes on both sides of the borders of sums without a scale.
TEST(CastStatistics, SumsBeyondBinary64) {
  const statistics_request request = everything({format_id::fp32});
  for (const int log2 : {-1074, -520, -501, -500, 499, 500, 900, 1023}) {
    SCOPED_TRACE(log2);
    matrix m = draw(content::ordinary, format_id::fp64, 40, 50);
    for (std::uint64_t& code : m.codes) {
      code = bits(std::ldexp(std::bit_cast<double>(code) * 4, log2));  // in (-2, 2) * 2^log2
    }
    m.codes[7] = bits(std::numeric_limits<double>::infinity());
    const std::vector<std::byte> memory = m.memory();
    expect_equal(statistics_of(view_of_codes(m.format, memory.data(), m.rows, m.cols), request),
                 by_definition(m, request));
  }
}

/// Values in which one step decides: zeros of either sign, and overflow of the largest element alone.
TEST(CastStatistics, DirectedValues) {
  const auto check = [](format_id format, const std::vector<double>& values,
                        std::vector<format_id> casts) {
    matrix m{format, 1, static_cast<std::int64_t>(values.size())};
    for (const double x : values) m.codes.push_back(code_of(format, x));
    const std::vector<std::byte> memory = m.memory();
    const statistics_request request = everything(std::move(casts));
    expect_equal(statistics_of(view_of_codes(format, memory.data(), 1, m.cols), request),
                 by_definition(m, request));
  };
  check(format_id::fp32, {-0.0, -0.0, -0.0}, {format_id::fp16});
  check(format_id::fp64, {-0.0, -0.0, -0.0, -0.0, -0.0}, {format_id::fp16});
  check(format_id::fp32, {-0.0, 0.0}, {format_id::fp16});
  for (const format_id to : all_targets()) {
    const double largest = decode_double(to, max_finite(to));
    const double second = decode_double(to, max_finite(to) - (1u << spec_of(to).padding_bits));
    const double tie = largest + (largest - second) / 2;
    for (const double x : {tie, std::nextafter(tie, 0.0), std::nextafter(tie, 1e308)}) {
      check(format_id::fp64, {0.5, x, 0.25}, {to});
      check(format_id::fp32, {0.5, -x, 0.25}, {to});
    }
  }
}

/// Several chunks, by every host backend, on several threads, in parts that cut chunks and rows.
TEST(CastStatistics, PartsThreadsAndBackends) {
  for (const format_id format : {format_id::fp64, format_id::fp32, format_id::bf16}) {
    statistics_request request = everything({format_id::fp16, format_id::e4m3});
    request.format = format;
    matrix m = draw(content::ordinary, format, 331, 307);  // 3 chunks and a part of one
    m.codes[70000] = code_of(format, -std::numeric_limits<double>::infinity());
    m.codes[90000] = code_of(format, std::numeric_limits<double>::quiet_NaN());
    m.codes[90001] = code_of(format, 1e6);
    const cast_statistics expected = by_definition(m, request);
    const std::vector<std::byte> memory = m.memory();
    for (const backend_info& backend : compiled_backends()) {
      if (backend.space != memory_space::host || !backend.supported) continue;
      for (const int threads : {1, 2, 3, 4}) {
        for (const std::size_t part : {101617u, 32768u, 65536u, 33000u, 1000u, 65539u}) {
          SCOPED_TRACE(std::string(name(format)) + ", " + std::string(backend.name) + ", " +
                       std::to_string(threads) + " threads, parts of " + std::to_string(part));
          statistics_pass pass(request, {m.rows, m.cols}, {backend.name, threads});
          do {
            for (std::size_t at = 0; at < m.size(); at += part) {
              pass.add(view_of_codes(format, memory.data() + at * m.bytes(), 1,
                                     static_cast<std::int64_t>(std::min(part, m.size() - at))));
            }
          } while (pass.again());
          expect_equal(pass.result(), expected);
        }
      }
    }
  }
}

/// Transposed, padded and unaligned memory gives the statistics of the elements in C order.
TEST(CastStatistics, Strides) {
  const statistics_request request = everything({format_id::fp16});
  for (const format_id format : {format_id::fp64, format_id::fp32, format_id::e4m3}) {
    const matrix m = draw(content::any_bits, format, 211, 223);
    const cast_statistics expected = by_definition(m, request);
    for (const auto& [row_stride, col_stride] : {std::pair{1, 211}, {500, 2}, {230, 1}}) {
      std::vector<std::byte> memory(1 + 211 * 500 * m.bytes());
      std::byte* const start = memory.data() + 1;
      for (std::int64_t i = 0; i < m.rows * m.cols; ++i) {
        const std::int64_t at = i / m.cols * row_stride + i % m.cols * col_stride;
        std::memcpy(start + static_cast<std::size_t>(at) * m.bytes(),
                    &m.codes[static_cast<std::size_t>(i)], m.bytes());
      }
      expect_equal(
          statistics_of({start, format, m.rows, m.cols, row_stride, col_stride}, request, {{}, 2}),
          expected);
    }
    // A stride of 0 repeats a row.
    matrix repeated{format, 9, m.cols};
    for (int r = 0; r < 9; ++r) {
      repeated.codes.insert(repeated.codes.end(), m.codes.begin(), m.codes.begin() + m.cols);
    }
    const std::vector<std::byte> memory = m.memory();
    expect_equal(statistics_of({memory.data(), format, 9, m.cols, 0, 1}, request),
                 by_definition(repeated, request));
  }
}

TEST(CastStatistics, OnlyWhatIsRequested) {
  const std::vector<float> x = {1, -3, 0.5f};
  statistics_pass pass({}, {1, 3});
  pass.add(view_of(x));
  EXPECT_FALSE(pass.again());
  const cast_statistics s = pass.result();
  EXPECT_EQ(s.count, 3u);
  EXPECT_EQ(s.amax, 3.0);
  EXPECT_EQ(s.mean, std::nullopt);
  EXPECT_EQ(s.std, std::nullopt);
  EXPECT_EQ(s.squares, 0.0);
  EXPECT_TRUE(s.binades.empty() && s.casts.empty() && s.percentiles.empty());
  EXPECT_TRUE(s.row_amax.empty() && s.column_amax.empty());

  // One pass for sums, a second one for deviations.
  statistics_pass sums({.sums = true}, {1, 3});
  sums.add(view_of(x));
  EXPECT_FALSE(sums.again());
  EXPECT_EQ(sums.result().mean, -0.5);
  statistics_pass deviations({.std = true}, {1, 3});
  deviations.add(view_of(x));
  EXPECT_TRUE(deviations.again());
  deviations.add(view_of(x));
  EXPECT_FALSE(deviations.again());
  EXPECT_EQ(deviations.result().std, std::sqrt((2.25 + 6.25 + 1) / 3));
}

template <class Error = invalid_argument, class Function>
void expect_refused(const std::string& expected, const Function& f) {
  try {
    f();
    ADD_FAILURE() << "nothing was refused; expected: " << expected;
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), expected);
  }
}

TEST(CastStatistics, Refusals) {
  const auto begin = [](const statistics_request& request, const matrix_shape& shape = {1, 3},
                        const executor& where = {}) { statistics_pass(request, shape, where); };
  expect_refused("request.casts[1]: must have a sign and fewer bits than fp64, got fp64", [&] {
    begin({.casts = {format_id::fp16, format_id::fp64}});
  });
  expect_refused("request.casts[0]: must have a sign and fewer bits than fp64, got e8m0",
                 [&] { begin({.casts = {format_id::e8m0}}); });
  expect_refused("request.format: must be a value of samebits::format_id, got 99",
                 [&] { begin({.format = static_cast<format_id>(99)}); });
  expect_refused("request.casts[0]: must be a value of samebits::format_id, got 13",
                 [&] { begin({.casts = {static_cast<format_id>(13)}}); });
  expect_refused("request.scale_log2: must be in -127..127, got 128",
                 [&] { begin({.scale_log2 = 128}); });
  expect_refused("request.scale_log2: must be in -127..127, got -128",
                 [&] { begin({.scale_log2 = -128}); });
  expect_refused("shape: must have sizes >= 0 and fewer than 2^63 elements, got [-1, 3]", [&] {
    begin({}, {-1, 3});
  });
  const std::int64_t large = std::int64_t{1} << 32;
  expect_refused(
      "shape: must have sizes >= 0 and fewer than 2^63 elements, got [4294967296, 4294967296]",
      [&] {
        begin({}, {large, large});
      });
  expect_refused("where.threads must be >= 0, got -1", [&] { begin({}, {1, 1}, {{}, -1}); });

  const std::vector<float> x = {1, 2, 3};
  const std::vector<double> other = {1};
  statistics_pass pass({.std = true}, {1, 3});
  pass.add(view_of(x.data(), 1, 2));
  expect_refused("elements: format must be that of the request, fp32, got fp64",
                 [&] { pass.add(view_of(other)); });
  expect_refused("elements: must lie in host memory; copy them to the host",
                 [&] { pass.add(on_device(view_of(x.data(), 1, 1))); });
  expect_refused("elements: sizes must be >= 0, got [-1, 1]", [&] {
    pass.add({x.data(), format_id::fp32, -1, 1, 1});
  });
  expect_refused("elements: of 2 in the view, the pass takes 1 more",
                 [&] { pass.add(view_of(x.data(), 1, 2)); });
  expect_refused("again: 1 elements are missing; add() takes all elements in every pass",
                 [&] { pass.again(); });
  expect_refused("result: passes are missing; add the elements until again() is false",
                 [&] { static_cast<void>(pass.result()); });
  pass.add(view_of(x.data() + 2, 1, 1));  // the refused calls changed nothing
  EXPECT_TRUE(pass.again());
  pass.add(view_of(x));
  EXPECT_FALSE(pass.again());
  EXPECT_EQ(pass.result().std, std::sqrt(2.0 / 3));
  expect_refused("elements: of 3 in the view, the pass takes 0 more",
                 [&] { pass.add(view_of(x)); });
}

}  // namespace
}  // namespace samebits
