// Dynamic 8-bit codes of optimizer states: codes, blocks, refusals.
#include "numerics/update/dynamic_codes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "numerics/update/stored.hpp"
#include "samebits/optimizer.hpp"
#include "support/refusal.hpp"
#include "unit/bf16_training.hpp"

namespace samebits {
namespace {

namespace n = numerics;
using enum stored_format;

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
float number(std::uint32_t x) { return std::bit_cast<float>(x); }

std::uint32_t code(stored_format f, std::uint32_t x) {
  return n::stored_code(f, x, n::binary32::one, 0);
}

/// Border j of n equal parts of [0.1, 1] (contract §12).
float part_border(int j, int n) {
  const float step = (1 - 0.1f) / static_cast<float>(n);
  return j < (n + 1) / 2 ? std::fma(step, static_cast<float>(j), 0.1f)
                         : std::fma(-step, static_cast<float>(n - j), 1.0f);
}

/// The numbers between 0 and 1; the lowest decade has `parts` of them.
std::vector<float> numbers_below_one(int parts) {
  std::vector<float> all;
  for (const float power : {1e-6f, 1e-5f, 1e-4f, 1e-3f, 1e-2f, 1e-1f, 1.0f}) {
    for (int j = 0; j < parts; ++j) {
      all.push_back(power * ((part_border(j, parts) + part_border(j + 1, parts)) / 2));
    }
    parts *= 2;
  }
  return all;
}

TEST(dynamic_codes, tables_have_the_stated_numbers) {
  std::vector<std::uint32_t> with_signs = {0};
  for (const float x : numbers_below_one(1)) {
    with_signs.insert(with_signs.begin(), bits(-x));
    with_signs.push_back(bits(x));
  }
  std::vector<std::uint32_t> without = {0};
  for (const float x : numbers_below_one(2)) without.push_back(bits(x));
  with_signs.push_back(bits(1.0f));
  without.push_back(bits(1.0f));
  const auto all = [](const std::uint32_t(&table)[256]) { return std::vector(table, table + 256); };
  EXPECT_EQ(all(n::dynamic_signed_table.values), with_signs);
  EXPECT_EQ(all(n::dynamic_unsigned_table.values), without);
}

TEST(dynamic_codes, numbers_of_the_tables_have_their_own_codes) {
  for (const stored_format f : {dynamic8_signed, dynamic8_unsigned}) {
    for (std::uint32_t i = 0; i < 256; ++i) {
      EXPECT_EQ(code(f, n::dynamic_table_of(f).values[i]), i);
      EXPECT_EQ(n::stored_value(f, i, bits(2.0f)),
                bits(2 * number(n::dynamic_table_of(f).values[i])));
    }
  }
}

TEST(dynamic_codes, ties_go_to_even_codes) {
  for (const stored_format f : {dynamic8_signed, dynamic8_unsigned}) {
    const auto& values = n::dynamic_table_of(f).values;
    for (std::uint32_t i = 0; i < 255; ++i) {
      if (f == dynamic8_signed && i == 126) continue;
      const std::uint32_t middle = bits((number(values[i]) + number(values[i + 1])) * 0.5f);
      const std::uint32_t outward = middle + 1, inward = middle - 1;
      const bool negative = middle >= n::binary32::sign_bit;
      EXPECT_EQ(code(f, middle), i + i % 2) << i;
      EXPECT_EQ(code(f, negative ? inward : outward), i + 1) << i;
      EXPECT_EQ(code(f, negative ? outward : inward), i) << i;
    }
  }
}

/// A code is found by a bin of numbers and one comparison.
TEST(dynamic_codes, codes_count_the_borders_below) {
  for (const stored_format f : {dynamic8_signed, dynamic8_unsigned}) {
    const auto& borders = n::dynamic_table_of(f).borders;
    const auto check = [&](std::uint32_t x) {
      const auto* const at = std::lower_bound(borders, borders + 255, n::order_key(x));
      ASSERT_EQ(n::dynamic_code(n::dynamic_table_of(f), x), at - borders) << x;
    };
    for (std::uint32_t upper = 0; upper < 0x7F80; ++upper) {  // every bin's ends
      for (const std::uint32_t sign : {0u, n::binary32::sign_bit}) {
        check(sign | upper << 16);
        check(sign | upper << 16 | 0xFFFFu);
      }
    }
    for (std::uint32_t x = 12345; x < 0x7F000000u; x += 65521) {
      check(x);
      check(x | n::binary32::sign_bit);
    }
  }
}

TEST(dynamic_codes, negative_numbers_keep_their_sign) {
  EXPECT_EQ(code(dynamic8_signed, 0), 127u);
  EXPECT_EQ(code(dynamic8_signed, 0x80000000u), 127u);
  EXPECT_EQ(code(dynamic8_signed, 1), 127u);
  EXPECT_EQ(code(dynamic8_signed, 0x80000001u), 126u);
  EXPECT_EQ(code(dynamic8_unsigned, 0x80000001u), 0u);
  EXPECT_EQ(code(dynamic8_unsigned, bits(-1.0f)), 0u);
}

TEST(dynamic_codes, every_nan_has_code_255) {
  for (const stored_format f : {dynamic8_signed, dynamic8_unsigned}) {
    for (const std::uint32_t nan : {0x7F800001u, 0x7FFFFFFFu, 0xFF800001u, 0xFFFFFFFFu}) {
      EXPECT_EQ(code(f, nan), 255u);
      EXPECT_EQ(n::dynamic_code(n::dynamic_table_of(f), nan), 255u);
    }
  }
}

TEST(dynamic_codes, large_numbers_have_the_outermost_codes) {
  for (const stored_format f : {dynamic8_signed, dynamic8_unsigned}) {
    EXPECT_EQ(code(f, n::binary32::inf), 255u);
    EXPECT_EQ(code(f, 0xFF800000u), 0u);
    EXPECT_EQ(code(f, bits(3.0f)), 255u);
    EXPECT_EQ(code(f, bits(-3.0f)), 0u);
  }
}

TEST(dynamic_codes, scale_is_amax_raised_to_the_smallest_normal_number) {
  const auto scale = [](std::uint32_t amax) { return n::block_scale(dynamic8_signed, amax); };
  EXPECT_EQ(scale(bits(3.0f)).dequantization_scale, bits(3.0f));
  EXPECT_EQ(scale(bits(3.0f)).factor, bits(1.0f / 3.0f));
  EXPECT_EQ(scale(0).dequantization_scale, bits(0x1p-126f));
  EXPECT_EQ(scale(0x007FFFFFu).factor, bits(0x1p126f));
  EXPECT_EQ(scale(n::binary32::inf).dequantization_scale, n::binary32::inf);
  EXPECT_EQ(scale(n::binary32::inf).factor, 0u);
  EXPECT_EQ(scale(n::binary32::nan).dequantization_scale, n::binary32::nan);
}

/// A block of zeros with scales of zeros, and one step: states of the first gradient.
TEST(dynamic_codes, first_step_from_scales_of_zeros) {
  bf16_training training;
  std::vector<std::uint8_t> codes[2] = {std::vector<std::uint8_t>(1000),
                                        std::vector<std::uint8_t>(1000)};
  std::vector<float> scales[2] = {std::vector<float>(4), std::vector<float>(4)};
  std::fill(training.gradient.begin(), training.gradient.end(), 2.0f);
  optimizer_tensor t = training.tensor(true, low_part::none);
  t.block = 256;
  t.states = {{{codes[0].data(), dynamic8_signed, scales[0].data()},
               {codes[1].data(), dynamic8_unsigned, scales[1].data()}}};
  optimizer_step(optimizer_list({t}), {&training.settings, 1}, {});
  EXPECT_EQ(codes[0], std::vector<std::uint8_t>(1000, 255));
  EXPECT_EQ(codes[1], std::vector<std::uint8_t>(1000, 255));
  EXPECT_EQ(scales[0], std::vector<float>(4, (1 - 0.9f) * 2));
  EXPECT_EQ(scales[1], std::vector<float>(4, (1 - 0.999f) * 4));
}

TEST(dynamic_codes, refusals) {
  const auto refusal = [](auto change) {
    bf16_training memory;
    std::vector<std::uint8_t> codes(1000);
    std::vector<float> scales(8);
    optimizer_tensor t = memory.tensor(true, low_part::none);
    change(t, codes.data(), scales.data());
    return support::refusal_of([&] { const optimizer_list list({t}); });
  };
  EXPECT_EQ(refusal([](optimizer_tensor& t, std::uint8_t* codes, float* scales) {
              t.weights = {codes, dynamic8_signed, scales};
            }),
            "tensors[0]: weights.format: with master weights must be bf16_nearest, "
            "fp16_nearest, e4m3_scaled or e5m2_scaled");
  EXPECT_EQ(refusal([](optimizer_tensor& t, std::uint8_t* codes, float*) {
              t.gradient = {codes, dynamic8_signed};
            }),
            "tensors[0]: gradient.format: must be fp32, bf16_nearest, fp16_nearest, e4m3_tensor "
            "or e5m2_tensor");
  EXPECT_EQ(refusal([](optimizer_tensor& t, std::uint8_t* codes, float* scales) {
              t.states[1] = {codes, dynamic8_unsigned, scales};
              t.first_index = 1;
            }),
            "tensors[0]: first_index: must be a multiple of block, because an array has scales");
}

}  // namespace
}  // namespace samebits
