// matmul(), error_of() and predict(): shapes, zeros, errors, and what they refuse, by name.
// engine.matmul_oracle compares products with the oracle.
#include "samebits/matmul.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "samebits/backend.hpp"
#include "samebits/error.hpp"
#include "samebits/types.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

constexpr auto wgmma = [](std::int64_t promotion) {
  return accumulator::tensor_core(tensor_unit::hopper_wgmma, promotion);
};

static_assert(cublaslt_order({1, 128}, {128, 1}) == scale_order::a_then_b_fused);
static_assert(cublaslt_order({1, 128}, {128, 128}) == scale_order::product_fused);
static_assert(cublaslt_order({128, 128}, {128, 1}) == scale_order::product_fused);
static_assert(cublaslt_order({1, 0}, {0, 1}) == scale_order::b_then_a);
static_assert(cublaslt_order({1, 0}, {128, 1}) == scale_order::product_fused);
static_assert(cublaslt_order({0, 0}, {0, 0}) == scale_order::product_fused);

TEST(Matmul, FusedOrdersAddToPlusZeroAtTheEnd) {
  const e4m3 zero{};
  const float sa = -3.0f;
  const float sb = 0.5f;
  matmul_options o;
  o.a_scales = {view_of(&sa, 1, 1), {0, 0}};
  o.b_scales = {view_of(&sb, 1, 1), {0, 0}};
  for (int i = 0; i <= enum_count<scale_order>; ++i) {
    if (i < enum_count<scale_order>) o.scale_order = static_cast<scale_order>(i);
    if (i == enum_count<scale_order>) o.scale_order.reset();
    const bool fused =
        !o.scale_order || name(*o.scale_order).find("fused") != std::string_view::npos;
    float d = 1;
    matmul(view_of(&zero, 1, 1), view_of(&zero, 1, 1), view_of(&d, 1, 1), wgmma(0), o);
    EXPECT_EQ(d, 0.0f);
    EXPECT_EQ(std::signbit(d), !fused) << i;
  }
}

TEST(Matmul, TakesEmptyShapes) {
  std::vector<float> d = {7, 7};
  const float c[] = {3, -0.0f};
  const auto halves = [](std::int64_t rows, std::int64_t cols) {
    return const_matrix_view{nullptr, format_id::fp16, rows, cols};
  };
  matmul(halves(2, 0), halves(0, 1), view_of(d.data(), 2, 1), wgmma(0));
  EXPECT_EQ(d, (std::vector<float>{0, 0}));
  matmul(halves(2, 0), halves(0, 1), view_of(d.data(), 2, 1), wgmma(0),
         {.c = view_of(c, 2, 1), .c_enters = addend::first});
  EXPECT_EQ(d, (std::vector<float>{3, 0}));
  EXPECT_TRUE(std::signbit(d[1]));
  matmul(halves(0, 5), halves(5, 0), {nullptr, format_id::fp32, 0, 0}, wgmma(0));
}

TEST(Matmul, ExactSumsHaveAnyRangeOnEveryBackend) {
  // Large numbers that cancel, small ones that remain: far apart, in one block of 128, all zeros.
  for (const std::size_t distance : std::vector<std::size_t>{128, 1, 0}) {
    std::vector<float> a(384, 0.0f);
    const std::vector<float> ones(384, 1.0f);
    if (distance != 0) a[0] = 0x1p100f, a[distance] = 0x1.8p-99f, a[2 * distance] = -0x1p100f;
    for (const backend_info& backend : compiled_backends()) {
      if (backend.space != memory_space::host || !backend.supported) continue;
      const executor where = find_executor(backend.name);
      double exact = -1;
      float blocks = -1;
      const const_matrix_view row = view_of(a.data(), 1, 384);
      const const_matrix_view column = transposed(view_of(ones.data(), 1, 384));
      matmul(row, column, view_of(&exact, 1, 1), accumulator::exact(), {}, where);
      matmul(row, column, view_of(&blocks, 1, 1), accumulator::fp32_per_128(), {}, where);
      EXPECT_EQ(exact, distance == 0 ? 0 : 0x1.8p-99) << backend.name;
      EXPECT_EQ(blocks, distance == 1 ? 0x1.8p-99f : 0) << backend.name;
    }
  }
}

TEST(Matmul, PredictsWithItsError) {
  // 1 and 511 products of 2^-14, each of which the unit cuts to 0
  std::vector<e4m3> a(512, e4m3(0.00390625f)), b(512, e4m3(0.015625f));
  a[0] = b[0] = e4m3(1.0f);
  const const_matrix_view row = view_of(a.data(), 1, 512);
  const const_matrix_view column = transposed(view_of(b.data(), 1, 512));
  float d = 0;
  const prediction p = predict(row, column, view_of(&d, 1, 1), wgmma(0));
  EXPECT_EQ(d, 1.0f);
  EXPECT_EQ(p.level, evidence::hardware);
  EXPECT_EQ(p.error.count, 1u);
  EXPECT_EQ(p.error.unequal, 1u);
  EXPECT_EQ(p.error.max, 511 * 0x1p-14);
  EXPECT_EQ(p.error.mean, p.error.max);
  EXPECT_EQ(p.error.noise, p.error.max * p.error.max);
  EXPECT_EQ(p.error.rounding_noise, 0);  // the exact value is a binary32 number
  EXPECT_EQ(p.error.accumulation_noise, p.error.noise);
  const prediction tree =
      predict(row, column, view_of(&d, 1, 1), accumulator::ieee_fp32(fp32_order::tree));
  EXPECT_EQ(tree.level, evidence::none);
  EXPECT_EQ(tree.error.unequal, 0u);
  EXPECT_EQ(p.error.octaves[5], 1u);  // 511 * 2^-14 / (1 + ...) is a little above 2^-6
  const auto tcgen05 = accumulator::tensor_core(tensor_unit::blackwell_tcgen05, 0);
  EXPECT_EQ(evidence_of(tcgen05, format_id::e4m3, format_id::e5m2), evidence::literature);
  EXPECT_EQ(evidence_of(accumulator::exact(), format_id::e4m3, format_id::e5m2), evidence::none);
  const auto ampere = [](format_id result) {
    return evidence_of(accumulator::tensor_core(tensor_unit::ampere_mma, 0, result),
                       format_id::fp16, format_id::fp16);
  };
  EXPECT_EQ(ampere(format_id::fp32), evidence::published);
  EXPECT_EQ(ampere(format_id::fp16), evidence::literature);
  accumulator tf32 = wgmma(0);
  tf32.fp32_as_tf32 = true;
  EXPECT_EQ(evidence_of(tf32, format_id::fp32, format_id::fp32), evidence::hardware);
}

TEST(Matmul, CountsErrors) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> results = {1, 1, 2, inf, 3, 0.5f};
  const std::vector<double> exact = {1 + 0x1p-40, 1, 3, 5, inf, 0};
  const product_error e = error_of(view_of(results.data(), 2, 3), view_of(exact.data(), 2, 3));
  EXPECT_EQ(e.count, 6u);
  EXPECT_EQ(e.nonfinite, 2u);  // a result, an exact value
  EXPECT_EQ(e.unequal, 3u);
  EXPECT_EQ(e.max, 1);
  EXPECT_EQ(e.mean, (1.5 + 0x1p-40) / 4);  // of those that are finite
  EXPECT_EQ(e.signal, 11 + 0x1p-39);
  EXPECT_EQ(e.noise, 1.25);
  EXPECT_EQ(e.rounding_noise, 0x1p-80);
  EXPECT_EQ(e.accumulation_noise, 1.25);
  std::array<std::uint64_t, 32> octaves = {};
  octaves[0] = 1;   // an error of 0
  octaves[1] = 1;   // 1 / 3
  octaves[31] = 1;  // 2^-40
  EXPECT_EQ(e.octaves, octaves);
}

/// Arguments that are fine until something is changed.
struct arguments {
  std::vector<e4m3> a_codes = std::vector<e4m3>(4 * 256);
  std::vector<e4m3> b_codes = std::vector<e4m3>(256 * 3);
  std::vector<float> numbers = std::vector<float>(4 * 256);
  std::vector<float> results = std::vector<float>(12, 5.0f);
  const_matrix_view a = view_of(a_codes.data(), 4, 256);
  const_matrix_view b = view_of(b_codes.data(), 256, 3);
  matrix_view d = view_of(results.data(), 4, 3);
  accumulator sum = wgmma(128);
  matmul_options o = {};
};

template <class Error>
void expect_refusal(const std::string& start, const std::function<void(arguments&)>& change) {
  arguments x;
  change(x);
  const std::string text = support::refusal_of<Error>([&] { matmul(x.a, x.b, x.d, x.sum, x.o); });
  EXPECT_EQ(text.substr(0, start.size()), start);
  EXPECT_EQ(x.results, std::vector<float>(12, 5.0f)) << start;
}

TEST(Matmul, RefusesByName) {
  const auto invalid = expect_refusal<invalid_argument>;
  invalid("b: shape must be [256, 3], got [255, 3]", [](auto& x) { x.b.rows = 255; });
  invalid("d: shape must be [4, 3], got [3, 4]", [](auto& x) { x.d = transposed(x.d); });
  invalid("a: data is null", [](auto& x) { x.a.data = nullptr; });
  invalid("a: format must be any but fp64 and e8m0", [](auto& x) { x.a.format = format_id::e8m0; });
  invalid("d: format must be one of fp32, fp16, bf16, got e4m3",
          [](auto& x) { x.d.format = format_id::e4m3; });
  invalid("d: format must be one of fp32, fp16, bf16, got fp64",
          [](auto& x) { x.d = view_of_codes(format_id::fp64, x.numbers.data(), 4, 3); });
  invalid("d: must lie in host memory", [](auto& x) { x.d = on_device(x.d); });
  invalid("d: overlaps a", [](auto& x) { x.d.data = x.a_codes.data(); });
  invalid("d: overlaps b", [](auto& x) { x.d.data = x.b_codes.data(); });
  invalid("d: overlaps options.c", [](auto& x) { x.o.c = x.d; });
  invalid("sum.promotion must be 0 or a multiple of the 32 products",
          [](auto& x) { x.sum.promotion = 48; });
  invalid("sum.promotion must be 0 or a multiple of the 32 products",
          [](auto& x) { x.sum.promotion = -128; });
  invalid("sum.products must be 0, 32, got 16", [](auto& x) { x.sum.products = 16; });
  invalid("sum.products must be 0, 32 or 16, got 8", [](auto& x) {
    x.sum = accumulator::tensor_core(tensor_unit::hopper_mma_sync, 0, format_id::fp32, 8);
  });
  invalid("sum.result must be fp32 or fp16, got bf16",
          [](auto& x) { x.sum.result = format_id::bf16; });
  invalid("sum.fp32_as_tf32 needs fp32 operands of a tensor_core, got e4m3 and e4m3",
          [](auto& x) { x.sum.fp32_as_tf32 = true; });
  invalid("sum.promotion: must be at least 0, got -1", [](auto& x) {
    x.sum = accumulator::ieee_fp32(fp32_order::tree);
    x.sum.promotion = -1;
  });
  invalid("options.c_enters: a c that comes first takes no promotion", [](auto& x) {
    x.sum = accumulator::ieee_fp32(fp32_order::tree);
    x.sum.promotion = 4;
    x.o.c = view_of(x.numbers.data(), 4, 3);
    x.o.c_enters = addend::first;
  });
  invalid("sum.slices: must be at least 1, got 0", [](auto& x) { x.sum.slices = 0; });
  invalid("sum.slice_tile: must be at least 1, got -8", [](auto& x) { x.sum.slice_tile = -8; });
  invalid("sum.residue_tile: must be at least 0, got -1", [](auto& x) { x.sum.residue_tile = -1; });
  invalid("sum.slices: slices need ieee_fp32 or tensor_core, got exact", [](auto& x) {
    x.sum = accumulator::exact();
    x.sum.slices = 2;
  });
  invalid("sum.slices: slices need ieee_fp32 or tensor_core, got fp32_per_128", [](auto& x) {
    x.sum = accumulator::fp32_per_128();
    x.sum.slice_rounding = slice_rounding::each;
  });
  invalid("sum.residue_tile: a residue needs tensor_core and contiguous slices", [](auto& x) {
    x.sum = accumulator::ieee_fp32(fp32_order::ascending);
    x.sum.residue_tile = 16;
  });
  invalid("sum.slice_rounding: a running sum needs ascending slices", [](auto& x) {
    x.sum.slice_sum = slice_sum::halves;
    x.sum.slice_rounding = slice_rounding::running;
  });
  invalid("sum.result must be fp32 with slices or a residue, got fp16", [](auto& x) {
    x.sum = accumulator::tensor_core(tensor_unit::hopper_wgmma, 0, format_id::fp16);
    x.sum.slices = 2;
  });
  invalid("sum.promotion must be 0 with cyclic slices or a residue, got 128", [](auto& x) {
    x.sum.slices = 2;
    x.sum.slice_order = slice_order::cyclic;
  });
  invalid("options.c_enters: after_first_slice needs ascending slices", [](auto& x) {
    x.sum = accumulator::exact();
    x.o.c = view_of(x.numbers.data(), 4, 3);
    x.o.c_enters = addend::after_first_slice;
  });
  const auto scales = [](arguments& x, std::int64_t rows, std::int64_t cols, tile_shape tile) {
    x.o.a_scales = {view_of(x.numbers.data(), rows, cols), tile};
  };
  invalid("options.a_scales.tile must be {0, 0}, {1, 0}", [&](auto& x) {
    scales(x, 4, 4, {1, 64});
  });
  invalid("options.a_scales.values: shape must be [4, 2], got [4, 3]", [&](auto& x) {
    scales(x, 4, 3, {1, 128});
  });
  invalid("options: scales that change along K need exact", [&](auto& x) {
    scales(x, 4, 2, {1, 128});
    x.sum.promotion = 256;
  });
  invalid("options: scales that change along K need one slice", [&](auto& x) {
    scales(x, 4, 2, {1, 128});
    x.sum.slices = 2;
  });
  invalid("options: scales that change along K need exact", [&](auto& x) {
    scales(x, 4, 2, {1, 128});
    x.sum = accumulator::ieee_fp32(fp32_order::tree);
  });
  invalid("d: overlaps options.a_scales.values", [](auto& x) {
    x.o.a_scales = {view_of(x.results.data(), 1, 1), {0, 0}};
  });
  invalid("d: overlaps options.b_scales.values", [](auto& x) {
    x.o.b_scales = {view_of(x.results.data(), 1, 1), {0, 0}};
  });
  invalid("options.b_scales.tile must be {0, 0}, {0, 1}", [](auto& x) {
    x.o.b_scales = {view_of(x.numbers.data(), 256, 1), {1, 0}};
  });
  invalid("options.c: shape must be [4, 3], got [3, 4]",
          [](auto& x) { x.o.c = view_of(x.numbers.data(), 3, 4); });
  invalid("options.c_enters: a c that does not come last takes no scales", [&](auto& x) {
    scales(x, 1, 1, {0, 0});
    x.o.c = view_of(x.numbers.data(), 4, 3);
    x.o.c_enters = addend::first;
  });
  invalid("options.c: format must be fp32, got fp16", [](auto& x) {
    x.o.c = view_of_codes(format_id::fp16, x.numbers.data(), 4, 3);
    x.o.c_enters = addend::first;
  });
  expect_refusal<unsupported>("ampere-mma does not multiply e4m3 by e4m3 into fp32",
                              [](auto& x) { x.sum.unit = tensor_unit::ampere_mma; });
  expect_refusal<unsupported>("hopper-wgmma does not multiply bf16 by bf16 into fp16", [](auto& x) {
    x.a = view_of_codes(format_id::bf16, x.numbers.data(), 4, 256);
    x.b = view_of_codes(format_id::bf16, x.numbers.data(), 256, 3);
    x.sum.result = format_id::fp16;
  });
}

TEST(Matmul, RefusesErrorsOfOtherFormats) {
  float x = 1;
  double y = 1;
  EXPECT_THROW(error_of(view_of(&y, 1, 1), view_of(&y, 1, 1)), invalid_argument);
  EXPECT_THROW(error_of(view_of(&x, 1, 1), view_of(&x, 1, 1)), invalid_argument);
  EXPECT_THROW(
      predict(view_of(&x, 1, 1), view_of(&x, 1, 1), view_of(&y, 1, 1), accumulator::exact()),
      invalid_argument);
}

}  // namespace
}  // namespace samebits
