// Recipes: the table's names and fields, and what quantize() by one refuses.
#include "samebits/recipe.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "samebits/error.hpp"

namespace samebits {
namespace {

TEST(Recipe, NamesAreDifferentAndFound) {
  std::set<std::string_view> names;
  for (const recipe_preset& p : recipe_presets) {
    EXPECT_TRUE(names.insert(p.name).second) << p.name;
    EXPECT_EQ(find_recipe(p.name), &p);
    EXPECT_FALSE(p.reproduces.empty() || p.version.empty() || p.exceptions.empty()) << p.name;
  }
  EXPECT_EQ(find_recipe("te_block_1d"), nullptr);
  EXPECT_EQ(find_recipe(""), nullptr);
}

TEST(Recipe, EveryRowIsAQuantizationOfItsOwn) {
  for (const recipe_preset& p : recipe_presets) {
    const recipe& r = p.rules;
    EXPECT_NO_THROW(static_cast<void>(scales_shape(3, 300, r.tile))) << p.name;
    EXPECT_NO_THROW(static_cast<void>(scales_shape(3, 300, column_tile(r)))) << p.name;
    EXPECT_TRUE(r.scale_format == format_id::fp32 || is_power_of_two(r.scale) ||
                has_two_levels(r.scale))
        << p.name;
    for (const recipe_preset& other : recipe_presets) {
      EXPECT_EQ(r == other.rules, &p == &other) << p.name << " " << other.name;
    }
  }
}

TEST(Recipe, TheFloorOfFbgemmsScaleIsAnAmax) {
  // RN(2^-9 / 448) has the bits of RN(1 / (448 * 512)).
  const recipe& r = find_recipe("FBGEMM_ROW")->rules;
  volatile float m = 448;
  volatile float both = 448 * 512;
  EXPECT_EQ(r.eps / m, 1 / both);
}

class RecipeCall : public ::testing::Test {
 protected:
  void run(const recipe& r, format_id scale_format) {
    const matrix_shape shape = scales_shape(2, 64, r.tile);
    scales.assign(static_cast<std::size_t>(shape.rows * shape.cols * storage_bytes(scale_format)),
                  0xA5);
    quantize(view_of_codes(format_id::fp32, static_cast<const float*>(x.data()), 2, 64),
             {.codes = view_of_codes(r.code_format, codes.data(), 2, 64),
              .scales = view_of_codes(scale_format, scales.data(), shape.rows, shape.cols)},
             r);
  }
  std::vector<float> x = std::vector<float>(128, 3.0f);
  std::vector<std::uint8_t> codes = std::vector<std::uint8_t>(128);
  std::vector<std::uint8_t> scales;
};

TEST_F(RecipeCall, EveryPresetRunsOrSaysWhyNot) {
  for (const recipe_preset& p : recipe_presets) {
    if (p.rules.source == scale_source::delayed) {
      EXPECT_THROW(run(p.rules, format_id::fp32), invalid_argument) << p.name;
      continue;
    }
    EXPECT_NO_THROW(run(p.rules, p.rules.scale_format)) << p.name;
    const bool fp32 = p.rules.scale_format == format_id::fp32;
    EXPECT_THROW(run(p.rules, fp32 ? format_id::e8m0 : format_id::fp32), invalid_argument)
        << p.name;
  }
}

TEST_F(RecipeCall, BytesOfThree) {
  // 3 = 1.5 * 2^1: FLOOR 2^(1-8); RCEIL the power of two above 3/448 = 2^-7.2.
  run(find_recipe("MXFP8_FLOOR")->rules, format_id::e8m0);
  EXPECT_EQ(scales, std::vector<std::uint8_t>(4, 127 - 7));
  EXPECT_EQ(codes[0], 0x7C);  // 384
  run(find_recipe("MXFP8_TE")->rules, format_id::e8m0);
  EXPECT_EQ(scales, std::vector<std::uint8_t>(4, 127 - 7));
}

}  // namespace
}  // namespace samebits
