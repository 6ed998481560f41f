// Quantization, recipes, lists, layouts and delayed scaling in C against C++, bit for bit.
#include <cmath>
#include <tuple>

#include "c_api/in_c.hpp"

namespace samebits::in_c {
namespace {

constexpr std::int64_t rows = 130, cols = 200;

/// All outputs of a quantization of [rows, cols], as C and C++ describe them.
struct results {
  results(const tile_shape& tile, format_id code_format, format_id scale_format)
      : shape(scales_shape(rows, cols, tile)),
        codes(code_format, rows, cols),
        scales(scale_format, shape.rows, shape.cols),
        codes_transposed(code_format, cols, rows),
        scales_transposed(scale_format, shape.cols, shape.rows) {}

  [[nodiscard]] quantize_outputs cpp() {
    return {.codes = codes.cpp(),
            .scales = scales.cpp(),
            .codes_transposed = codes_transposed.cpp(),
            .scales_transposed = scales_transposed.cpp(),
            .statistics = &statistics};
  }
  [[nodiscard]] samebits_quantize_outputs c() {
    views[0] = codes.c();
    views[1] = scales.c();
    views[2] = codes_transposed.c();
    views[3] = scales_transposed.c();
    samebits_quantize_outputs outputs = SAMEBITS_QUANTIZE_OUTPUTS_INIT;
    outputs.codes = &views[0];
    outputs.scales = &views[1];
    outputs.codes_transposed = &views[2];
    outputs.scales_transposed = &views[3];
    outputs.statistics = &statistics_in_c;
    return outputs;
  }
  /// Expects that these results, written by C, equal `other`, written by C++.
  void expect(const results& other) const {
    EXPECT_EQ(codes.bytes, other.codes.bytes);
    EXPECT_EQ(scales.bytes, other.scales.bytes);
    EXPECT_EQ(codes_transposed.bytes, other.codes_transposed.bytes);
    EXPECT_EQ(scales_transposed.bytes, other.scales_transposed.bytes);
    EXPECT_TRUE(same_bytes(statistics_in_c, other.statistics));
  }

  matrix_shape shape;
  matrix codes, scales, codes_transposed, scales_transposed;
  quantize_statistics statistics;
  samebits_quantize_statistics statistics_in_c = {};
  samebits_view views[4] = {};
};

TEST(CQuantize, EveryScaleRuleTileAndPolicy) {
  const tile_shape tiles[] = {{1, 128}, {128, 128}, {1, 0}, {0, 1}, {0, 0}, {16, 1}, {1, 32}};
  for (const format_id from : {format_id::fp32, format_id::fp16, format_id::bf16}) {
    matrix in = random_matrix(from, rows, cols);
    for (const tile_shape& tile : tiles) {
      for (int rule = 0; rule < enum_count<scale_rule>; ++rule) {
        for (const int k : {0, 1, 2, 3}) {
          const format_id codes = k % 2 == 0 ? format_id::e4m3 : format_id::e5m2;
          results expected(tile, codes, format_id::fp32);
          quantize(in.cpp(), expected.cpp(),
                   {.tile = tile,
                    .rule = static_cast<scale_rule>(rule),
                    .eps = 1e-4f,
                    .upper_bound = 1200.0f,
                    .on_nonfinite = static_cast<nonfinite>(k),
                    .round = k < 2 ? rounding::nearest_even : rounding::stochastic,
                    .on_overflow = static_cast<overflow>(k % 3),
                    .on_nan = static_cast<nan_policy>(k % 2),
                    .random = {.seed = 5, .stream = 6, .bits = 12},
                    .on_scale_overflow = static_cast<scale_overflow>(k % 2)});
          samebits_quantize_options options = SAMEBITS_QUANTIZE_OPTIONS_INIT;
          options.tile = {tile.rows, tile.cols};
          options.rule = rule;
          options.eps = 1e-4f;
          options.upper_bound = 1200.0f;
          options.nonfinite = k;
          options.rounding = k < 2 ? SAMEBITS_ROUNDING_NEAREST_EVEN : SAMEBITS_ROUNDING_STOCHASTIC;
          options.overflow = k % 3;
          options.nan_policy = k % 2;
          options.random.seed = 5;
          options.random.stream = 6;
          options.random.bits = 12;
          options.scale_overflow = k % 2;
          results got(tile, codes, format_id::fp32);
          const samebits_view x = in.c();
          const samebits_quantize_outputs outputs = got.c();
          ASSERT_OK(samebits_quantize(&x, &outputs, &options, nullptr));
          got.expect(expected);
          size_t bytes = 1;
          ASSERT_OK(samebits_quantize_workspace(&x, &outputs, &options, &bytes, nullptr));
          EXPECT_EQ(bytes, 0u);
        }
      }
    }
  }
}

TEST(CQuantize, DefaultsAreThoseOfCpp) {
  matrix in = random_matrix(format_id::bf16, rows, cols);
  results expected({}, format_id::e4m3, format_id::fp32);
  quantize(in.cpp(), expected.cpp());
  results got({}, format_id::e4m3, format_id::fp32);
  const samebits_view x = in.c();
  const samebits_quantize_outputs outputs = got.c();
  EXPECT_OK(samebits_quantize(&x, &outputs, nullptr, nullptr));
  got.expect(expected);
}

TEST(CQuantize, GivenInverseScalesAndSkip) {
  matrix in = number_matrix(format_id::fp32, rows, cols);
  const float inverse = 3.5f;
  const samebits_view scale = view(view_of(&inverse, 1, 1));
  results expected({0, 0}, format_id::e4m3, format_id::fp32);
  quantize(in.cpp(), expected.cpp(), {.tile = {0, 0}, .inverse_scales = view_of(&inverse, 1, 1)});
  results got({0, 0}, format_id::e4m3, format_id::fp32);
  samebits_quantize_options options = SAMEBITS_QUANTIZE_OPTIONS_INIT;
  options.tile = {0, 0};
  options.inverse_scales = &scale;
  const samebits_view x = in.c();
  const samebits_quantize_outputs outputs = got.c();
  EXPECT_OK(samebits_quantize(&x, &outputs, &options, nullptr));
  got.expect(expected);
  const std::uint32_t skip = 1;
  options.skip_if_nonzero = &skip;
  got.codes.bytes.assign(got.codes.bytes.size(), 0xAB);
  EXPECT_OK(samebits_quantize(&x, &outputs, &options, nullptr));
  EXPECT_EQ(got.codes.bytes, std::vector<std::uint8_t>(got.codes.bytes.size(), 0xAB));
}

TEST(CQuantize, Dequantize) {
  matrix in = random_matrix(format_id::fp32, rows, cols);
  for (const format_id scales : {format_id::fp32, format_id::e8m0}) {
    results q({1, 32}, format_id::e4m3, scales);
    quantize(in.cpp(), q.cpp(), {.tile = {1, 32}, .rule = scale_rule::mx_rceil});
    for (const format_id to : {format_id::fp32, format_id::fp16, format_id::bf16}) {
      matrix expected(to, rows, cols);
      dequantize(q.codes.cpp(), q.scales.cpp(), expected.cpp(), {1, 32});
      matrix got(to, rows, cols);
      const samebits_view codes = q.codes.c(), s = q.scales.c(), out = got.c();
      const samebits_tile tile = {1, 32};
      ASSERT_OK(samebits_dequantize(&codes, &s, &out, &tile, nullptr));
      EXPECT_EQ(got.bytes, expected.bytes);
    }
  }
}

TEST(CQuantize, ScalesShape) {
  const samebits_tile tile = {1, 128};
  int64_t r = 0, c = 0;
  EXPECT_OK(samebits_scales_shape(100, 513, &tile, &r, &c));
  EXPECT_EQ(r, 100);
  EXPECT_EQ(c, 5);
  const samebits_tile odd = {1, 100};
  EXPECT_REFUSED(samebits_scales_shape(1, 1, &odd, &r, &c), SAMEBITS_INVALID_ARGUMENT,
                 "tile must be");
}

TEST(CQuantize, EveryRecipe) {
  matrix in = random_matrix(format_id::bf16, rows, cols);
  ASSERT_EQ(samebits_recipe_count(), static_cast<int32_t>(recipe_presets.size()));
  for (int32_t i = 0; i < samebits_recipe_count(); ++i) {
    const recipe_preset& expected = recipe_presets[static_cast<std::size_t>(i)];
    samebits_recipe_preset preset = {};
    ASSERT_OK(samebits_recipe_at(i, &preset));
    EXPECT_EQ(preset.name, expected.name);
    EXPECT_EQ(preset.reproduces, expected.reproduces);
    EXPECT_EQ(preset.version, expected.version);
    EXPECT_EQ(preset.exceptions, expected.exceptions);
    EXPECT_EQ(preset.verified, static_cast<int32_t>(expected.verified));
    EXPECT_EQ(preset.verified_nonfinite, static_cast<int32_t>(expected.nonfinite));
    samebits_recipe_preset found = {};
    ASSERT_OK(samebits_find_recipe(preset.name, &found));
    EXPECT_EQ(found.name, preset.name);

    const recipe& rules = expected.rules;
    results q(rules.tile, format_id::e4m3, rules.scale_format);
    results got(rules.tile, format_id::e4m3, rules.scale_format);
    const samebits_view x = in.c();
    const samebits_quantize_outputs outputs = got.c();
    if (rules.source == scale_source::delayed) {
      EXPECT_REFUSED(samebits_quantize_by_recipe(&x, &outputs, &preset.rules, nullptr),
                     SAMEBITS_INVALID_ARGUMENT, "delayed");
      continue;
    }
    quantize(in.cpp(), q.cpp(), rules);
    ASSERT_OK(samebits_quantize_by_recipe(&x, &outputs, &preset.rules, nullptr));
    got.expect(q);
    samebits_quantize_options options = SAMEBITS_QUANTIZE_OPTIONS_INIT;
    ASSERT_OK(samebits_recipe_options(&preset.rules, &options));
    got.codes.bytes.assign(got.codes.bytes.size(), 0);
    ASSERT_OK(samebits_quantize(&x, &outputs, &options, nullptr));
    got.expect(q);
  }
  samebits_recipe_preset preset = {};
  EXPECT_REFUSED(samebits_find_recipe("TE", &preset), SAMEBITS_INVALID_ARGUMENT,
                 "there are: TE_BLOCK_1D, ");
  EXPECT_REFUSED(samebits_recipe_at(16, &preset), SAMEBITS_INVALID_ARGUMENT, "0 .. 15");
}

TEST(CQuantize, Lists) {
  matrix a = random_matrix(format_id::bf16, 40, 300, 1);
  matrix b = random_matrix(format_id::bf16, 3, 17, 2);
  matrix codes_a(format_id::e4m3, 40, 300), codes_b(format_id::e4m3, 3, 17);
  matrix scales_a(format_id::fp32, 40, 3), scales_b(format_id::fp32, 3, 1);
  const samebits_view in[] = {a.c(), b.c()};
  const samebits_view codes[] = {codes_a.c(), codes_b.c()};
  const samebits_view scales[] = {scales_a.c(), scales_b.c()};
  const samebits_quantize_item items[] = {
      {&in[0], &codes[0], &scales[0], nullptr, nullptr, nullptr, "a"},
      {&in[1], &codes[1], &scales[1], nullptr, nullptr, nullptr, nullptr}};
  samebits_recipe_preset preset = {};
  ASSERT_OK(samebits_find_recipe("DEEPGEMM_FP32_CUDA", &preset));
  samebits_quantize_options options = SAMEBITS_QUANTIZE_OPTIONS_INIT;
  ASSERT_OK(samebits_recipe_options(&preset.rules, &options));
  samebits_quantize_list* lists[2] = {};
  ASSERT_OK(samebits_quantize_list_create(items, 2, &options, &lists[0]));
  ASSERT_OK(samebits_quantize_list_create_by_recipe(items, 2, &preset.rules, &lists[1]));
  for (samebits_quantize_list* list : lists) {
    codes_a.bytes.assign(codes_a.bytes.size(), 0);
    ASSERT_OK(samebits_quantize_list_run(list, nullptr));
    for (const auto& [in_cpp, c, s] :
         {std::tuple(&a, &codes_a, &scales_a), std::tuple(&b, &codes_b, &scales_b)}) {
      matrix expected_codes(format_id::e4m3, in_cpp->rows, in_cpp->cols);
      matrix expected_scales(format_id::fp32, s->rows, s->cols);
      quantize(in_cpp->cpp(), {.codes = expected_codes.cpp(), .scales = expected_scales.cpp()},
               find_recipe("DEEPGEMM_FP32_CUDA")->rules);
      EXPECT_EQ(c->bytes, expected_codes.bytes);
      EXPECT_EQ(s->bytes, expected_scales.bytes);
    }
    samebits_quantize_list_destroy(list);
  }
  samebits_quantize_list_destroy(nullptr);
  const samebits_quantize_item wrong = {&codes[0], &codes[0], nullptr, nullptr,
                                        nullptr,   nullptr,   "weight"};
  EXPECT_REFUSED(samebits_quantize_list_create(&wrong, 1, nullptr, &lists[0]),
                 SAMEBITS_INVALID_ARGUMENT, "weight");
}

TEST(CQuantize, ScaleLayouts) {
  for (int l = 0; l < enum_count<scale_layout>; ++l) {
    const auto layout = static_cast<scale_layout>(l);
    matrix scales(format_id::fp32, 5, 7);
    for (std::size_t i = 0; i < 35; ++i) {
      const float power = std::ldexp(1.0f, static_cast<int>(i) - 17);
      std::memcpy(&scales.bytes[4 * i], &power, 4);
    }
    int64_t bytes = 0;
    int32_t format = -1;
    ASSERT_OK(samebits_layout_bytes(l, 5, 7, &bytes, &format));
    ASSERT_EQ(bytes, layout_bytes(layout, 5, 7));
    EXPECT_EQ(format, static_cast<int32_t>(layout_format(layout)));
    std::vector<std::byte> expected(static_cast<std::size_t>(bytes));
    std::vector<std::byte> got(static_cast<std::size_t>(bytes));
    arrange_scales(scales.cpp(), layout, expected, {.padding = scale_padding::one});
    samebits_scale_layout_options options = SAMEBITS_SCALE_LAYOUT_OPTIONS_INIT;
    options.padding = SAMEBITS_SCALE_PADDING_ONE;
    samebits_scale_layout_report report = {};
    const samebits_view s = scales.c();
    ASSERT_OK(samebits_arrange_scales(&s, l, got.data(), got.size(), &options, &report));
    EXPECT_EQ(got, expected);
    EXPECT_EQ(report.scales, 35u);
    EXPECT_EQ(report.first_row, -1);
    matrix back(format_id::fp32, 5, 7);
    const samebits_view r = back.c();
    ASSERT_OK(samebits_restore_scales(got.data(), got.size(), l, &r, nullptr, nullptr));
    EXPECT_EQ(back.bytes, scales.bytes);
  }
  int64_t bytes = 0;
  EXPECT_REFUSED(samebits_layout_bytes(7, 1, 1, &bytes, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "samebits_scale_layout, got 7");
  EXPECT_REFUSED(samebits_layout_bytes(0, -1, 1, &bytes, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "sizes");
}

TEST(CQuantize, DelayedScaling) {
  for (int k = 0; k < 8; ++k) {
    const delayed_settings settings = {.to = k < 4 ? format_id::e4m3 : format_id::e5m2,
                                       .margin = k - 3,
                                       .choice = static_cast<history_choice>(k % 2),
                                       .on_zero = static_cast<zero_step>(k / 2 % 2)};
    samebits_delayed_settings in_c = SAMEBITS_DELAYED_SETTINGS_INIT;
    in_c.format = static_cast<int32_t>(settings.to);
    in_c.margin = settings.margin;
    in_c.history_choice = k % 2;
    in_c.zero_step = k / 2 % 2;
    std::vector<float> expected(5), got(5);
    delayed_scale state;
    samebits_delayed_scale state_in_c = SAMEBITS_DELAYED_SCALE_INIT;
    for (std::uint64_t step = 0; step < 20; ++step) {
      const float amax = static_cast<float>(random_word(9, 0, step, 10) % 700);
      observe(expected, amax);
      ASSERT_OK(samebits_delayed_observe(got.data(), got.size(), amax));
      state = updated(state, expected, settings);
      ASSERT_OK(samebits_delayed_update(&state_in_c, got.data(), got.size(), &in_c));
      EXPECT_EQ(got, expected);
      EXPECT_TRUE(same_bytes(state_in_c, state));
    }
  }
  samebits_delayed_settings settings = SAMEBITS_DELAYED_SETTINGS_INIT;
  settings.format = SAMEBITS_FORMAT_FP32;
  samebits_delayed_scale state = SAMEBITS_DELAYED_SCALE_INIT;
  EXPECT_REFUSED(samebits_delayed_update(&state, nullptr, 0, &settings), SAMEBITS_INVALID_ARGUMENT,
                 "e4m3 or e5m2");
}

}  // namespace
}  // namespace samebits::in_c
