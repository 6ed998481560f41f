// Tests of check_quantize: correct quantizers pass; each planted error is found with ten seeds,
// shrunk, and named.
#include "samebits/testkit/quantize.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "samebits/error.hpp"
#include "samebits/recipe.hpp"
#include "samebits/scalar.hpp"
#include "support/effort.hpp"
#include "support/refusal.hpp"

namespace samebits::testkit {
namespace {

using in_span = std::span<const float>;
using code_span = std::span<std::uint8_t>;
using scale_span = std::span<float>;

constexpr quantize_effort effort{.matrices = 30, .max_elements = 3000};
const int seeds = support::planted_seeds();

/// The arrays of one call.
struct arrays {
  in_span in;
  std::int64_t rows;
  std::int64_t cols;
  code_span codes;
  scale_span scales;
};

/// Quantizes with some options. `a` may have fewer scales than the options give; all others are
/// dropped.
void quantize_into(const arrays& a, const quantize_options& options) {
  const matrix_shape s = scales_shape(a.rows, a.cols, options.tile);
  std::vector<float> scales(static_cast<std::size_t>(s.rows * s.cols));
  quantize(view_of(a.in.data(), a.rows, a.cols),
           {.codes = view_of_codes(format_id::e4m3, a.codes.data(), a.rows, a.cols),
            .scales = view_of(scales.data(), s.rows, s.cols)},
           options, {"reference", 1});
  std::copy_n(scales.begin(), std::min(scales.size(), a.scales.size()), a.scales.begin());
}

struct planted_quantizer {
  const char* name;
  const char* recipe;
  std::function<void(const arrays&, const quantize_options&)> quantizer;
  const char* sentence;
};

std::ostream& operator<<(std::ostream& out, const planted_quantizer& p) { return out << p.name; }

/// Returns a quantizer with other options.
template <class Change>
std::function<void(const arrays&, const quantize_options&)> with(Change change) {
  return [change](const arrays& a, quantize_options options) {
    change(options);
    quantize_into(a, options);
  };
}

/// Returns a quantizer that computes right scales and codes and then changes them.
template <class Change>
std::function<void(const arrays&, const quantize_options&)> then(Change change) {
  return [change](const arrays& a, const quantize_options& options) {
    quantize_into(a, options);
    change(a, options);
  };
}

/// Returns a quantizer that casts scaled elements by another rule. For TE_CURRENT, which has one
/// scale for a matrix.
std::function<void(const arrays&, const quantize_options&)> casting(const cast_rule& rule) {
  return then([rule](const arrays& a, const quantize_options&) {
    float amax = 0;
    for (const float x : a.in) {
      if (!(x - x != 0)) amax = std::max(amax, std::abs(x));
    }
    const bool has_inf =
        std::any_of(a.in.begin(), a.in.end(), [](float x) { return x == x && x - x != 0; });
    float scale = amax == 0 || has_inf ? 1 : 448 / amax;
    if (scale - scale != 0) scale = std::numeric_limits<float>::max();
    for (std::size_t i = 0; i < a.in.size(); ++i) {
      a.codes[i] = encode<format_id::e4m3>(a.in[i] * scale, rule);
    }
  });
}

std::vector<planted_quantizer> planted_quantizers() {
  return {
      {"rule", "DEEPGEMM_FP32_CUDA", with([](quantize_options& o) { o.scale = scale_rule::rcp; }),
       "scale rule rcp instead of dg_cuda"},
      {"pow2_missing", "TE_BLOCK_1D", with([](quantize_options& o) { o.scale = scale_rule::te; }),
       "scale rule te instead of te_pow2"},
      {"pow2", "DEEPGEMM_FP32_CPU", with([](quantize_options& o) { o.scale = scale_rule::pow2; }),
       "scale rule pow2 instead of rcp"},
      {"eps", "DEEPGEMM_FP32_CUDA", with([](quantize_options& o) { o.eps = 0; }), "eps missing"},
      {"tile", "DSV3_IEEE", with([](quantize_options& o) {
         o.tile = {128, 1};
       }),
       "tile transposed: tiles of 128 x 1 instead of 1 x 128"},
      {"tile_size", "DSV3_IEEE", with([](quantize_options& o) {
         o.tile = {1, 64};
       }),
       "tiles of 1 x 64 instead of 1 x 128"},
      {"inverse", "TE_BLOCK_1D", then([](const arrays& a, const quantize_options&) {
         for (float& s : a.scales) s = 1 / s;
       }),
       "scales stored as their inverse"},
      {"scales_transposed", "DSV3_IEEE", then([](const arrays& a, const quantize_options& o) {
         const matrix_shape s = scales_shape(a.rows, a.cols, o.tile);
         const std::vector<float> right(a.scales.begin(), a.scales.end());
         for (std::int64_t i = 0; i < s.rows * s.cols; ++i) {
           a.scales[static_cast<std::size_t>(i)] =
               right[static_cast<std::size_t>(i % s.rows * s.cols + i / s.rows)];
         }
       }),
       "scales stored column by column"},
      {"policy", "DSV3_IEEE", with([](quantize_options& o) { o.nonfinite = nonfinite::propagate; }),
       "NaN and Inf in a tile as under nonfinite::propagate instead of skip_nan"},
      {"zeros", "TE_CURRENT", then([](const arrays& a, const quantize_options&) {
         const bool zeros = std::all_of(a.in.begin(), a.in.end(), [](float x) { return x == 0; });
         if (zeros && !a.scales.empty()) a.scales[0] = 0;
       }),
       "only tiles of zeros are wrong"},
      {"cut_tiles", "DSV3_IEEE", then([](const arrays& a, const quantize_options&) {
         if (a.cols % 128 != 0 && !a.codes.empty()) a.codes.back() ^= 1;
       }),
       "only tiles cut off at the edge of the matrix are wrong"},
      {"ties_away", "TE_CURRENT", casting({rounding::nearest_away, overflow::saturate}),
       "right scales; codes: ties away from zero instead of to even"},
      {"truncated", "TE_CURRENT", casting({rounding::toward_zero, overflow::saturate}),
       "right scales; codes: rounded toward zero (truncated) instead of to nearest even"},
      {"tail", "DSV3_IEEE",
       [](const arrays& a, const quantize_options& o) {
         std::vector<std::uint8_t> codes(a.codes.size());
         arrays whole = a;
         whole.codes = codes;
         quantize_into(whole, o);
         std::copy_n(codes.begin(), codes.size() / 4 * 4, a.codes.begin());
       },
       "right scales; codes: tail not written"},
  };
}

class ExplainQuantize : public ::testing::TestWithParam<planted_quantizer> {};

TEST_P(ExplainQuantize, EverySeedFindsShrinksAndNamesTheError) {
  const planted_quantizer& planted = GetParam();
  const quantize_options options = options_of(find_recipe(planted.recipe)->rules);
  for (int seed = 1; seed <= seeds; ++seed) {
    quantize_effort with_seed = effort;
    with_seed.seed = static_cast<std::uint64_t>(seed) * 1000;
    const auto function = [&](in_span in, std::int64_t rows, std::int64_t cols, code_span codes,
                              scale_span scales) {
      planted.quantizer({in, rows, cols, codes, scales}, options);
    };
    const quantize_check_result result = check_quantize(planted.recipe, function, with_seed);
    ASSERT_TRUE(result.failure()) << "seed " << seed << ": " << result.message();
    RecordProperty("cases", std::to_string(result.compared()));
    EXPECT_LE(result.failure()->rows * result.failure()->cols, 300) << result.message();
    const std::string named = std::string("looks like: ") + planted.sentence;
    EXPECT_NE(result.message().find(named), std::string::npos) << seed << ": " << result.message();
  }
}

std::string name_of(const ::testing::TestParamInfo<planted_quantizer>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Planted, ExplainQuantize, ::testing::ValuesIn(planted_quantizers()),
                         name_of);

TEST(CheckQuantize, RightQuantizersPassWithEverySeed) {
  for (const recipe_preset& preset : recipe_presets) {
    if (preset.rules.source == scale_source::delayed) continue;
    if (has_two_levels(preset.rules.scale)) continue;
    const quantizer_under_test q = quantizer_of(preset.name);
    const auto call = [&](in_span in, std::int64_t rows, std::int64_t cols, code_span codes,
                          auto scales) {
      const matrix_shape s = scales_shape(rows, cols, q.options.tile);
      quantize(view_of(in.data(), rows, cols),
               {.codes = view_of_codes(q.to, codes.data(), rows, cols),
                .scales = view_of_codes(q.scale_format, scales.data(), s.rows, s.cols)},
               q.options);
    };
    for (int seed = 1; seed <= seeds; ++seed) {
      const quantize_effort with_seed{10, 1000, static_cast<std::uint64_t>(seed) * 1000};
      const auto fp32_scales = [&](in_span in, std::int64_t rows, std::int64_t cols,
                                   code_span codes,
                                   scale_span scales) { call(in, rows, cols, codes, scales); };
      const auto byte_scales = [&](in_span in, std::int64_t rows, std::int64_t cols,
                                   code_span codes,
                                   code_span scales) { call(in, rows, cols, codes, scales); };
      const quantize_check_result result = q.scale_format == format_id::e8m0
                                               ? check_quantize(q, byte_scales, with_seed)
                                               : check_quantize(q, fp32_scales, with_seed);
      EXPECT_TRUE(result) << preset.name << ": " << result.message();
      EXPECT_GT(result.compared(), 100u);
    }
  }
}

TEST(CheckQuantize, ATextSaysWhichTileAndElementIsWrong) {
  const quantize_options options = options_of(find_recipe("DSV3_IEEE")->rules);
  const auto function = [&](in_span in, std::int64_t rows, std::int64_t cols, code_span codes,
                            scale_span scales) {
    quantize_into({in, rows, cols, codes, scales}, options);
    if (rows >= 2 && cols >= 130) codes[static_cast<std::size_t>(cols + 129)] ^= 1;
  };
  const quantize_check_result result = check_quantize("DSV3_IEEE", function, {.seed = 7});
  ASSERT_TRUE(result.failure());
  EXPECT_EQ(result.failure()->rows, 2) << result.message();
  EXPECT_EQ(result.failure()->cols, 130);
  EXPECT_EQ(result.failure()->part, quantized_part::code);
  for (const char* part :
       {"fp32 to e4m3 with scales in fp32, tile 1 x 128, rule div", "0 of 4 scales and 1 of 260",
        "matrix   [2, 130], tile [1, 1], code of element [1, 129]", "input    0x", "got      0x",
        "expected 0x", "looks like: ", "repeat with RC_PARAMS=\"seed=7\""}) {
    EXPECT_NE(result.message().find(part), std::string::npos) << part << " in " << result.message();
  }
}

TEST(CheckQuantize, TheDomainLimitsTheElements) {
  quantizer_under_test q = quantizer_of("TE_CURRENT");
  q.domain = {.nan = false, .infinite = false, .largest = 1000};
  const auto function = [&](in_span in, std::int64_t rows, std::int64_t cols, code_span codes,
                            scale_span scales) {
    for (const float x : in) EXPECT_LE(std::abs(x), 1000);
    quantize_into({in, rows, cols, codes, scales}, q.options);
  };
  const quantize_check_result result = check_quantize(q, function, effort);
  EXPECT_TRUE(result) << result.message();
}

TEST(CheckQuantize, WritesElsewhereAndExceptionsAreFailures) {
  const auto beyond = [](in_span in, std::int64_t rows, std::int64_t cols, code_span codes,
                         scale_span scales) {
    quantize_into({in, rows, cols, codes, scales}, {.tile = {0, 0}});
    scales.data()[scales.size()] = 1;
  };
  EXPECT_NE(check_quantize("TE_CURRENT", beyond).message().find("wrote outside its scales"),
            std::string::npos);
  const auto throwing = [](in_span, std::int64_t, std::int64_t, code_span, scale_span) {
    throw std::runtime_error("no such device");
  };
  EXPECT_NE(check_quantize("TE_CURRENT", throwing).message().find("threw: no such device"),
            std::string::npos);
}

TEST(CheckQuantize, RefusesArgumentsByName) {
  const auto function = [](in_span, std::int64_t, std::int64_t, code_span, scale_span) {};
  const auto expect_refused = [&](const quantizer_under_test& q, const quantize_effort& how,
                                  const std::string& named) {
    support::expect_refusal(named, [&] { check_quantize(q, function, how); });
  };
  const quantizer_under_test q = quantizer_of("TE_CURRENT");
  expect_refused(q, {.matrices = -1}, "effort.matrices");
  expect_refused(q, {.max_elements = 0}, "effort.max_elements");
  expect_refused(quantizer_of("TE_CURRENT", format_id::bf16), {}, "in of the quantizer");
  expect_refused(quantizer_of("MXFP8_TE"), {}, "scales of the quantizer");
  quantizer_under_test bad = q;
  bad.options.eps = -1;
  expect_refused(bad, {}, "options.eps");
  EXPECT_THROW(quantizer_of("TE_DELAYED"), invalid_argument);
  EXPECT_THROW(quantizer_of("NO_SUCH_RECIPE"), invalid_argument);
}

}  // namespace
}  // namespace samebits::testkit
