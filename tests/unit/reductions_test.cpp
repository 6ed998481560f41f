// Reductions of matrices against the oracle's exact steps, the sum tree and plain counting.
#include "samebits/reductions.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "engine/core/strided_buffer.hpp"
#include "oracle/arithmetic.hpp"
#include "oracle/convert.hpp"
#include "oracle/sum_tree.hpp"
#include "samebits/scalar.hpp"
#include "support/arithmetic_case.hpp"
#include "support/array_generators.hpp"
#include "support/backends.hpp"
#include "support/refusal.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

/// Finite codes whose sum is neither exact nor without cancellation, in a matrix with gaps.
struct matrix {
  format_id format;
  strided_buffer memory;
  std::vector<std::uint64_t> codes;  ///< in row-major order

  matrix(format_id f, std::int64_t rows, std::int64_t cols, std::uint64_t seed,
         std::int64_t col_stride = 1)
      : format(f), memory(f, {rows, cols, cols * col_stride + 3, col_stride, 1}) {
    std::mt19937_64 random(seed);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) {
        std::uint64_t code = 0;
        do {
          code = draw_code(static_cast<code_family>(random() % code_family_count), f, f,
                           [&random] { return random(); });
        } while (!is_finite(f, code));
        set(r, c, code);
        codes.push_back(code);
      }
    }
  }
  void set(std::int64_t r, std::int64_t c, std::uint64_t code) {
    const matrix_view v = memory.view();
    memory.store(r * v.row_stride + c * v.col_stride, code);
  }
};

/// Codes of fp64 of the elements.
std::vector<std::uint64_t> as_fp64(const matrix& m) {
  std::vector<std::uint64_t> all;
  for (const std::uint64_t code : m.codes) {
    all.push_back(oracle::round_exact(oracle_of(format_id::fp64),
                                      oracle::decode(oracle_of(m.format), code), {}));
  }
  return all;
}

/// One exact operation rounded to nearest even.
std::uint64_t step(oracle::operation op, format_id format, std::uint64_t a, std::uint64_t b) {
  const std::array<oracle::operand, 2> x{oracle::operand{&oracle_of(format), a},
                                         {&oracle_of(format), b}};
  return oracle::arithmetic(op, x, oracle_of(format), {}).code;
}

constexpr std::array formats{format_id::fp32, format_id::fp16, format_id::bf16, format_id::e4m3,
                             format_id::e5m2};

TEST(Reductions, SumsAreTheOraclesTree) {
  for (const format_id f : formats) {
    for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>{0, 5},
                                     {1, 1},
                                     {1, 2},
                                     {3, 7},
                                     {1, 4095},
                                     {64, 64},
                                     {1, 4097},
                                     {7, 1801}}) {
      matrix m(f, rows, cols, 3, rows % 2 + 1);
      const std::vector<std::uint64_t> inputs = as_fp64(m);
      std::vector<std::uint64_t> squares = inputs;
      for (std::uint64_t& x : squares) {
        x = step(oracle::operation::mul, format_id::fp64, x, x);
      }
      const std::uint64_t expected = oracle::sum_tree(inputs);
      const std::uint64_t expected_squares = oracle::sum_tree(squares);
      for (const int threads : {1, 0, 2, 3}) {
        EXPECT_EQ(bits(sum(m.memory.view(), {{}, threads})), expected) << name(f) << cols;
        EXPECT_EQ(bits(sum_of_squares(m.memory.view(), {{}, threads})), expected_squares)
            << name(f) << cols;
      }
    }
  }
}

/// A dot product by exact steps of the oracle.
std::uint64_t expected_dot(const matrix& x, const matrix& y, format_id in, sum_order order) {
  std::vector<std::uint64_t> p;
  for (std::size_t i = 0; i < x.codes.size(); ++i) {
    const std::array<oracle::operand, 2> pair{oracle::operand{&oracle_of(x.format), x.codes[i]},
                                              {&oracle_of(y.format), y.codes[i]}};
    p.push_back(oracle::arithmetic(oracle::operation::mul, pair, oracle_of(in), {}).code);
  }
  if (p.empty()) return 0;
  if (order == sum_order::sequential) {
    std::uint64_t total = p[0];
    for (std::size_t i = 1; i < p.size(); ++i) {
      total = step(oracle::operation::add, in, total, p[i]);
    }
    return total;
  }
  while (p.size() > 1) {
    std::vector<std::uint64_t> next;
    for (std::size_t i = 0; i + 1 < p.size(); i += 2) {
      next.push_back(step(oracle::operation::add, in, p[i], p[i + 1]));
    }
    if (p.size() % 2 == 1) next.push_back(p.back());
    p = next;
  }
  return p[0];
}

TEST(Reductions, DotsAreTheOraclesSteps) {
  for (const format_id f : formats) {
    for (const format_id g : {f, format_id::bf16}) {
      for (const std::int64_t size : {0, 1, 2, 3, 100, 5001}) {
        matrix x(f, 1, size, 5);
        matrix y(g, 1, size, 6, 2);
        if (f == format_id::fp32) {  // else nearly everything overflows binary32
          for (std::int64_t i = 0; i < size; ++i) {
            auto& code = x.codes[static_cast<std::size_t>(i)];
            code = (code & 0x87FFFFFFu) | 0x38000000u;
            x.set(0, i, code);
          }
        }
        for (const sum_order order : {sum_order::tree, sum_order::sequential}) {
          for (const int threads : {1, 2}) {
            const double wide =
                dot(x.memory.view(), y.memory.view(), {accumulation::fp64, order}, {{}, threads});
            EXPECT_EQ(bits(wide), expected_dot(x, y, format_id::fp64, order)) << name(f) << size;
            const double narrow =
                dot(x.memory.view(), y.memory.view(), {accumulation::fp32, order}, {{}, threads});
            std::uint64_t expected = expected_dot(x, y, format_id::fp32, order);
            if (is_nan(format_id::fp32, expected)) expected = 0x7FFFFFFF;
            EXPECT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(narrow)), expected)
                << name(f) << " " << name(g) << " " << size;
          }
        }
      }
    }
  }
}

TEST(Reductions, SpecialSums) {
  const std::vector<float> zeros{-0.0f};
  EXPECT_EQ(bits(sum(view_of(zeros))), bits(-0.0));
  EXPECT_EQ(bits(dot(view_of(zeros), view_of(zeros))), 0u);
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> cancelling{inf, -inf};
  const std::vector<float> nan{-std::numeric_limits<float>::quiet_NaN(), 1};
  const std::vector<float> ones{1, 1};
  for (const auto& x : {cancelling, nan}) {
    EXPECT_EQ(bits(sum(view_of(x))), 0x7FFFFFFFFFFFFFFFu);
    const double narrow = dot(view_of(x), view_of(ones), {accumulation::fp32});
    EXPECT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(narrow)), 0x7FFFFFFFu);
  }
}

TEST(Reductions, CountsAndAmaxOfAllCodes) {
  for (const format_id f : formats) {
    const std::uint64_t last = f == format_id::fp32 ? 70000 : (1u << spec_of(f).storage_bits) - 1;
    const auto rows = static_cast<std::int64_t>(last + 1);
    strided_buffer memory(f, {rows, 1, 2, 1, 3});
    element_counts expected;
    std::uint64_t largest = 0;
    for (std::uint64_t i = 0; i <= last; ++i) {
      const std::uint64_t code = f == format_id::fp32 ? i * 0x10001u * 7u & 0xFFFFFFFFu : i;
      memory.store(static_cast<std::int64_t>(2 * i), code);
      const number_class kind = classify(f, code);
      ++expected.elements;
      if (is_nan(f, code)) ++expected.nan;
      if (kind == number_class::infinite) ++expected.inf;
      if (kind == number_class::zero) ++expected.zeros;
      if (kind == number_class::subnormal) ++expected.subnormals;
      if (is_finite(f, code)) {
        largest =
            std::max(largest, code & ((std::uint64_t{1} << (spec_of(f).storage_bits - 1)) - 1));
      }
    }
    for (const int threads : {1, 3}) {
      EXPECT_EQ(counts(memory.view(), {{}, threads}), expected) << name(f);
      const float with_nan = amax(memory.view(), {{}, threads});
      if (expected.nan != 0) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(with_nan), 0x7FFFFFFFu) << name(f);
      }
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      if (!is_finite(f, memory.at(i, 0))) memory.store(2 * i, 0);
    }
    const auto value = convert_code(f, format_id::fp32, largest, {}).code;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(amax(memory.view(), {{}, 2})), value) << name(f);
  }
  const std::vector<float> nothing;
  EXPECT_EQ(std::bit_cast<std::uint32_t>(amax(view_of(nothing))), 0u);
}

TEST(Reductions, ArgumentsAreNamed) {
  const std::vector<float> x(4, 1.0f);
  const std::vector<double> wide(4, 1.0);
  const auto expect_refused = [](const auto& call, const std::string& text) {
    EXPECT_EQ(support::refusal_of(call).substr(0, text.size()), text);
  };
  expect_refused([&] { amax(view_of(wide)); }, "in: format must be one of");
  expect_refused([&] { sum(view_of(x), {{}, -1}); }, "where.threads");
  expect_refused([&] { counts(view_of(x), {"abacus", 1}); }, "backend 'abacus'");
  expect_refused([&] { dot(view_of(x), view_of(x.data(), 1, 3)); },
                 "y: shape must be that of x, [1, 4], got [1, 3]");
  expect_refused([&] { dot(view_of(x), view_of(x), {static_cast<accumulation>(9)}); },
                 "options.precision");
  expect_refused(
      [&] {
        dot(view_of(x), view_of(x), {{}, static_cast<sum_order>(9)});
      },
      "options.order");
  EXPECT_ANY_THROW(sum(on_device(view_of(x))));
  double result = 0;
  const auto in_device = "in: must lie in device memory";
  expect_refused([&] { enqueue_sum(view_of(x), &result); }, in_device);
  expect_refused([&] { enqueue_amax(view_of(x), nullptr); }, in_device);
  expect_refused([&] { (void)reduction_workspace(view_of(x)); }, in_device);
  expect_refused([&] { enqueue_dot(view_of(x), view_of(x), &result); },
                 "x: must lie in device memory");
  expect_refused([&] { enqueue_counts(on_device(view_of(x)), nullptr); },
                 "result: must be device memory aligned to 8 bytes");
}

}  // namespace
}  // namespace samebits
