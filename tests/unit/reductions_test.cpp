// Reductions of matrices against the processor's steps in the orders of the contract, and plain counting.
#include "samebits/reductions.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "engine/core/strided_buffer.hpp"
#include "samebits/scalar.hpp"
#include "support/arithmetic_case.hpp"
#include "support/backends.hpp"
#include "support/refusal.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

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

template <class Real>
std::vector<Real> products(const matrix& x, const matrix& y) {
  std::vector<Real> all;
  for (std::size_t i = 0; i < x.codes.size(); ++i) {
    all.push_back(static_cast<Real>(decode_double(x.format, x.codes[i])) *
                  static_cast<Real>(decode_double(y.format, y.codes[i])));
  }
  return all;
}

/// A sum of rounded additions in the order of the contract.
template <class Real>
Real added(std::vector<Real> p, sum_order order) {
  if (p.empty()) return 0;
  if (order == sum_order::sequential) {
    for (std::size_t i = 1; i < p.size(); ++i) p[0] += p[i];
    return p[0];
  }
  for (; p.size() > 1; p.resize((p.size() + 1) / 2)) {
    for (std::size_t j = 0; j < p.size() / 2; ++j) p[j] = p[2 * j] + p[2 * j + 1];
    if (p.size() % 2 == 1) p[p.size() / 2] = p.back();
  }
  return p[0];
}

constexpr std::array formats{format_id::fp32, format_id::fp16, format_id::bf16, format_id::e4m3,
                             format_id::e5m2};

TEST(Reductions, SumsAreTheContractsTree) {
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
      std::vector<double> inputs;
      for (const std::uint64_t code : m.codes) inputs.push_back(decode_double(f, code));
      const double expected = added(inputs, sum_order::tree);
      const double expected_squares = added(products<double>(m, m), sum_order::tree);
      for (const int threads : {1, 0, 2, 3}) {
        EXPECT_EQ(bits(sum(m.memory.view(), {{}, threads})), bits(expected)) << name(f) << cols;
        EXPECT_EQ(bits(sum_of_squares(m.memory.view(), {{}, threads})), bits(expected_squares))
            << name(f) << cols;
      }
    }
  }
}

TEST(Reductions, DotsAreTheContractsSteps) {
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
          const double expected = added(products<double>(x, y), order);
          float expected_narrow = added(products<float>(x, y), order);
          if (std::isnan(expected_narrow)) expected_narrow = std::bit_cast<float>(0x7FFFFFFFu);
          for (const int threads : {1, 2}) {
            const auto by = [&](accumulation precision) {
              return dot(x.memory.view(), y.memory.view(), {precision, order}, {{}, threads});
            };
            EXPECT_EQ(bits(by(accumulation::fp64)), bits(expected)) << name(f) << size;
            EXPECT_EQ(bits(static_cast<float>(by(accumulation::fp32))), bits(expected_narrow))
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
    EXPECT_EQ(bits(static_cast<float>(narrow)), 0x7FFFFFFFu);
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
        EXPECT_EQ(bits(with_nan), 0x7FFFFFFFu) << name(f);
      }
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      if (!is_finite(f, memory.at(i, 0))) memory.store(2 * i, 0);
    }
    const auto value = convert_code(f, format_id::fp32, largest, {}).code;
    EXPECT_EQ(bits(amax(memory.view(), {{}, 2})), value) << name(f);
  }
  const std::vector<float> nothing;
  EXPECT_EQ(bits(amax(view_of(nothing))), 0u);
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
