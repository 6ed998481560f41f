// Statistics of casts against the plainest code that computes the same, from single codes.
#include "samebits/cast_statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cast_statistics_definition.hpp"
#include "samebits/error.hpp"
#include "samebits/scalar.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

using namespace plain_statistics;

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

void expect_as_defined(const matrix& m, const statistics_request& request) {
  const std::vector<std::byte> memory = m.memory();
  expect_equal(statistics_of(view_of_codes(m.format, memory.data(), m.rows, m.cols), request),
               by_definition(m, request));
}

TEST(CastStatistics, EveryFormatToEveryFormat) {
  const statistics_request request = everything(all_targets());
  for (int f = 0; f < format_count; ++f) {
    for (const content what : contents) {
      SCOPED_TRACE(std::string(name(format_at(f))) + ", content " +
                   std::to_string(static_cast<int>(what)));
      expect_as_defined(draw(what, format_at(f), 29, 31), request);
    }
  }
}

TEST(CastStatistics, SmallMatrices) {
  const statistics_request request = everything({format_id::e4m3});
  for (const auto& [rows, cols] : {std::pair{0, 0}, {0, 5}, {5, 0}, {1, 1}, {1, 2}, {3, 1}}) {
    expect_as_defined(draw(content::any_bits, format_id::fp32, rows, cols), request);
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
        expect_as_defined(draw(what, format, 2, cols), request);
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
        expect_as_defined(draw(what, format, 17, 23), request);
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
    expect_as_defined(m, request);
  }
}

/// Values in which one step decides: zeros of either sign, and overflow of the largest element alone.
TEST(CastStatistics, DirectedValues) {
  const auto check = [](format_id format, const std::vector<double>& values,
                        std::vector<format_id> casts) {
    matrix m{format, 1, static_cast<std::int64_t>(values.size())};
    for (const double x : values) m.codes.push_back(code_of(format, x));
    expect_as_defined(m, everything(std::move(casts)));
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
  EXPECT_EQ(support::refusal_of<Error>(f), expected);
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
