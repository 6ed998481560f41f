// find_rule(): finds planted rules, and none for a result with a wrong bit; rules as text.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "numerics/bits/encode.hpp"
#include "samebits/product_rule.hpp"
#include "samebits/types.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

template <class T, std::size_t Count>
T one_of(const T (&values)[Count], std::mt19937_64& next) {
  return values[next() % Count];
}

/// Any accumulation of K as a whole of operands in this format.
accumulator any_chain(format_id operands, std::mt19937_64& next) {
  const bool fp8 = operands == format_id::e4m3;
  if (!fp8 && next() % 3 == 0) return accumulator::ieee_fp32(fp32_order::ascending_fused);
  const std::int64_t promotion = fp8 ? one_of({0, 128}, next) : 0;
  const bool narrow = !fp8 && next() % 2 == 0;
  accumulator sum = accumulator::tensor_core(
      narrow ? tensor_unit::hopper_mma_sync : tensor_unit::hopper_wgmma, promotion, format_id::fp32,
      !narrow                       ? 0
      : operands == format_id::fp32 ? 4
                                    : 8);
  sum.fp32_as_tf32 = operands == format_id::fp32;
  return sum;
}

/// Any rule that find_rule() searches.
product_rule any_rule(format_id operands, format_id result, bool has_c, std::mt19937_64& next) {
  product_rule rule = {any_chain(operands, next)};
  accumulator& sum = rule.sum;
  const bool unit = sum.kind == accumulator_kind::tensor_core;
  sum.slices = one_of({1, 1, 2, 3, 5, 8}, next);
  if (sum.slices > 1) {
    if (sum.promotion == 0 && next() % 2 == 0) sum.slice_order = slice_order::cyclic;
    const bool cyclic = sum.slice_order == slice_order::cyclic;
    sum.slice_tile =
        cyclic ? one_of({8, 16, 32, 64, 4}, next) : one_of({64, 32, 16, 8, 4, 1}, next);
    if (cyclic && !unit && next() % 3 == 0) {
      sum.slices = 8;
      sum.slice_tile = 1;
      sum.promotion = one_of({8, 16, 32}, next);
    }
    if (cyclic && next() % 3 == 0) sum.slice_sum = slice_sum::halves;
    if (result != format_id::fp32) {
      sum.slice_rounding =
          one_of({slice_rounding::none, slice_rounding::each, slice_rounding::running}, next);
      if (sum.slice_sum == slice_sum::halves) sum.slice_rounding = slice_rounding::none;
    }
    if (has_c && sum.slice_sum == slice_sum::ascending && next() % 2 == 0) {
      rule.c_enters = addend::after_first_slice;
    }
  }
  if (unit && sum.promotion == 0 && sum.slice_order == slice_order::contiguous) {
    sum.residue_tile = one_of({0, 8, 16, 32}, next);
  }
  if (has_c && result == format_id::fp32 && (unit || sum.promotion == 0) && next() % 4 == 0)
    rule.c_enters = addend::first;
  return rule;
}

/// A random product of operands with magnitudes of 2^-7 to 2, and its result by a rule.
struct planted_product {
  struct range {
    std::int64_t min, max;
  };
  planted_product(std::uint64_t seed, range lines, range depths) : next(seed) {
    operands = one_of({format_id::fp32, format_id::bf16, format_id::fp16, format_id::e4m3}, next);
    result = operands == format_id::e4m3 ? format_id::bf16
             : next() % 3 == 0           ? format_id::fp32
                                         : operands;
    const auto one_in = [&](const range& r) {
      return r.min +
             static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(r.max - r.min + 1));
    };
    rows = one_in(lines);
    cols = one_in(lines);
    depth = one_in(depths);
    a = codes(operands, rows * depth);
    b = codes(operands, depth * cols);
    if (next() % 2 == 0) c = codes(result, rows * cols);
    rule = any_rule(operands, result, !c.empty(), next);
    d = by(rule);
  }

  std::vector<std::uint32_t> codes(format_id format, std::int64_t count) {
    std::vector<std::uint32_t> packed(static_cast<std::size_t>(count));
    auto* to = reinterpret_cast<std::byte*>(packed.data());
    const auto bytes = static_cast<std::size_t>(storage_bytes(format));
    for (std::size_t i = 0; i < packed.size(); ++i) {
      const auto word = static_cast<std::uint32_t>(next());
      const std::uint32_t x = (word & 0x807fffff) | ((120 + (word >> 23) % 8) << 23);
      const std::uint32_t code =
          numerics::encode<std::uint32_t>(spec_of(format), cast_rule{}, x, 0).code;
      std::memcpy(to + i * bytes, &code, bytes);
    }
    return packed;
  }
  [[nodiscard]] const_matrix_view view(format_id format, const std::vector<std::uint32_t>& of,
                                       std::int64_t r, std::int64_t n) const {
    return {of.data(), format, r, n, n, 1};
  }
  [[nodiscard]] const_matrix_view a_view() const { return view(operands, a, rows, depth); }
  [[nodiscard]] const_matrix_view b_view() const { return view(operands, b, depth, cols); }
  [[nodiscard]] matmul_options options() const {
    matmul_options o;
    if (!c.empty()) o.c = view(result, c, rows, cols);
    return o;
  }
  [[nodiscard]] std::vector<std::uint32_t> by(const product_rule& one) const {
    std::vector<std::uint32_t> got(static_cast<std::size_t>(rows * cols));
    matmul(a_view(), b_view(), {got.data(), result, rows, cols, cols, 1}, one, options());
    return got;
  }
  [[nodiscard]] std::vector<product_rule> found() const {
    return find_rule(a_view(), b_view(), view(result, d, rows, cols),
                     {.known = options(), .max_slices = 8});
  }

  std::mt19937_64 next;
  format_id operands;
  format_id result;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t depth;
  std::vector<std::uint32_t> a, b, c, d;  ///< codes, packed; d is as long as its elements need
  product_rule rule = {accumulator::exact()};
};

TEST(FindRule, FindsWhatWasPlanted) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    const planted_product p(seed, {1, 7}, {1, 300});
    RC_LOG() << rule_text(p.rule) << ", [" << p.rows << ", " << p.depth << "] x [" << p.depth
             << ", " << p.cols << "], " << name(p.operands) << " into " << name(p.result);
    const std::vector<product_rule> rules = p.found();
    RC_ASSERT(!rules.empty());
    for (const product_rule& rule : rules) RC_ASSERT(p.by(rule) == p.d);
  }));
}

TEST(FindRule, FindsNoneForOneWrongBit) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    planted_product p(seed, {8, 8}, {100, 300});
    ASSERT_FALSE(p.found().empty()) << seed;
    const std::uint64_t bits = 8 * static_cast<std::uint64_t>(storage_bytes(p.result));
    const std::uint64_t bit = p.next() % (64 * bits);
    p.d[bit / 32] ^= std::uint32_t{1} << (bit % 32);
    EXPECT_TRUE(p.found().empty()) << seed << ": " << rule_text(p.rule);
  }
}

TEST(FindRule, NamesTheRuleOfASplitProduct) {
  planted_product p(3, {8, 8}, {600, 600});
  p.operands = format_id::bf16;
  p.a = p.codes(p.operands, p.rows * p.depth);
  p.b = p.codes(p.operands, p.depth * p.cols);
  p.c.clear();
  p.result = format_id::fp32;
  p.rule = {accumulator::tensor_core(tensor_unit::hopper_wgmma, 0)};
  p.rule.sum.slices = 4;
  p.rule.sum.slice_tile = 64;
  p.d = p.by(p.rule);
  EXPECT_EQ(p.found(), std::vector{p.rule});
  // A unit of another GPU computes other bits.
  find_rule_options ampere = {.units = {tensor_unit::ampere_mma}, .max_slices = 8};
  const auto d = p.view(p.result, p.d, p.rows, p.cols);
  EXPECT_TRUE(find_rule(p.a_view(), p.b_view(), d, ampere).empty());
  // More slices than are searched.
  EXPECT_TRUE(find_rule(p.a_view(), p.b_view(), d, {.max_slices = 3}).empty());
}

TEST(FindRule, SamplesScalesWithTheResult) {
  std::mt19937_64 next(7);
  constexpr std::int64_t m = 200, k = 300, n = 40;
  std::vector<e4m3> a(m * k), b(k * n);
  for (auto* x : {&a, &b}) {
    for (e4m3& v : *x) v = e4m3(static_cast<float>(next() % 1000) * 0x1p-9f - 1);
  }
  const auto scales_of = [&](std::size_t count) {
    std::vector<float> s(count);
    for (float& x : s) x = static_cast<float>(next() % 1000 + 1);
    return s;
  };
  std::vector<float> d(m * n);
  const auto expect_promotion = [&](tile_shape a_tile, tile_shape b_tile) {
    const matrix_shape as = scales_shape(m, k, a_tile);
    const matrix_shape bs = scales_shape(k, n, b_tile);
    const auto x = scales_of(static_cast<std::size_t>(as.rows * as.cols));
    const auto y = scales_of(static_cast<std::size_t>(bs.rows * bs.cols));
    find_rule_options o;
    o.known.a_scales = {view_of(x.data(), as.rows, as.cols), a_tile};
    o.known.b_scales = {view_of(y.data(), bs.rows, bs.cols), b_tile};
    const const_matrix_view va = view_of(a.data(), m, k), vb = view_of(b.data(), k, n);
    const product_rule rule = {accumulator::tensor_core(tensor_unit::hopper_wgmma, 128)};
    matmul(va, vb, view_of(d.data(), m, n), rule, o.known);
    const const_matrix_view result = view_of(d.data(), m, n);
    EXPECT_EQ(find_rule(va, vb, result, o), std::vector{rule});
    // Row 12 and column 2 are in the sample, row 1 is not: 200 / 16 = 12, 40 / 16 = 2.
    d[1 * n + 2] += 1;
    EXPECT_EQ(find_rule(va, vb, result, o).empty(), a_tile.rows == 128);
    d[12 * n + 2] += 1;
    EXPECT_EQ(find_rule(va, vb, result, o).empty(), true);
  };
  expect_promotion({1, 0}, {0, 1});
  expect_promotion({1, 128}, {128, 1});
  expect_promotion({1, 128}, {128, 128});
  expect_promotion({128, 128}, {128, 1});
}

TEST(FindRule, ANanEqualsEveryNan) {
  const std::array<float, 2> a = {1, std::numeric_limits<float>::infinity()};
  const std::array<float, 2> b = {1, 0};
  const float d = -std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(
      find_rule(view_of(a.data(), 1, 2), view_of(b.data(), 2, 1), view_of(&d, 1, 1)).empty());
}

TEST(FindRule, RefusesByName) {
  const std::array<float, 6> x = {};
  const double wide[4] = {};
  const auto expect_refusal = [&](const std::string& says, const const_matrix_view& d,
                                  const find_rule_options& options) {
    const std::string text = support::refusal_of(
        [&] { find_rule(view_of(x.data(), 2, 3), view_of(x.data(), 3, 2), d, options); });
    EXPECT_EQ(text.substr(0, says.size()), says);
  };
  const const_matrix_view d = view_of(x.data(), 2, 2);
  expect_refusal("options.max_slices: must be at least 1, got 0", d, {.max_slices = 0});
  expect_refusal("options.sample: must be at least 0, got -1", d, {.sample = -1});
  expect_refusal("options.units", d, {.units = {static_cast<tensor_unit>(99)}});
  expect_refusal("d: shape must be [2, 2], got [2, 3]", view_of(x.data(), 2, 3), {});
  expect_refusal("d: format must be one of fp32, fp16, bf16, got fp64", view_of(wide, 2, 2), {});
  expect_refusal("options.c: shape must be [2, 2], got [3, 2]", d,
                 {.known = {.c = view_of(x.data(), 3, 2)}});
}

TEST(ProductRule, TextGivesTheRuleBack) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    const product_rule rule = planted_product(seed, {1, 1}, {1, 1}).rule;
    RC_ASSERT(parse_rule(rule_text(rule)) == rule);
  }));
  EXPECT_EQ(rule_text({accumulator::ieee_fp32(fp32_order::ascending)}),
            "sum=ieee_fp32 order=ascending");
  EXPECT_EQ(rule_text({accumulator::exact(), addend::first}), "sum=exact c_enters=first");
}

TEST(ProductRule, RefusesOtherTexts) {
  const auto expect_refusal = [](const char* text, const std::string& says) {
    const std::string message = support::refusal_of([&] { parse_rule(text); });
    EXPECT_EQ(message.substr(0, says.size()), says);
  };
  expect_refusal("", "rule: must start with sum=, got ''");
  expect_refusal("slices=2", "rule: must start with sum=, got 'slices=2'");
  expect_refusal("sum=exact slices", "rule: must be NAME=VALUE with a space between two");
  expect_refusal("sum=exact  slices=2", "rule: must be NAME=VALUE with a space between two");
  expect_refusal("sum=sharp", "sum: must be one of exact, ieee_fp32");
  expect_refusal("sum=exact slice=2", "'slice' is not an option; there are: sum, order, unit");
}

}  // namespace
}  // namespace samebits
