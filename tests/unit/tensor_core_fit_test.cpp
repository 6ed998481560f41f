// The fit of tensor core parameters on results that the model made with other parameters.
#include "tensor_core_probe/settings/fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/effort.hpp"
#include "tensor_core_probe/settings/setting.hpp"
#include "tensor_core_probe/settings/setting_grid.hpp"
#include "tensor_cores/tensor_cases.hpp"

namespace samebits::backends::tensor_cores {
namespace {

using enum format_id;
using enum tensor_unit;

tensor_setting row_setting(tensor_unit unit, const shape& s) {
  const auto row = find_tensor_row(unit, *tensor_operands_of(s.a, s.b));
  return setting_of(numerics::accumulate_rule_of(*row, s.a, s.b, s.result, s.products));
}

/// As many results of each family as a check searches with.
std::vector<observation> results_by(const tensor_setting& truth, const shape& s, int each,
                                    std::uint64_t seed) {
  const numerics::accumulate_rule rule = rule_of(s, truth);
  word_stream words(seed);
  std::vector<observation> seen;
  for (int f = 0; f < family_count; ++f) {
    for (int i = 0; i < each; ++i) {
      const case_codes x = draw_case(s, static_cast<family>(f), words);
      seen.push_back({x, result_of(rule, x)});
    }
  }
  return seen;
}

struct subject {
  const char* name;
  shape operands;
  tensor_unit unit;
  tensor_setting truth;
};

/// The row of `unit`, changed.
template <class Change>
subject changed(const char* name, const shape& s, tensor_unit unit, const Change& change) {
  tensor_setting truth = row_setting(unit, s);
  change(truth);
  return {name, s, unit, truth};
}

subject simulated(const char* name, const shape& s, tensor_unit unit, tensor_unit truth) {
  return {name, s, unit, row_setting(truth, s)};
}

std::vector<subject> subjects() {
  const shape half = {fp16, fp16, fp32, 16};
  const shape brain = {bf16, bf16, fp32, 16};
  const shape fp8 = {e4m3, e4m3, fp32, 32};
  return {
      simulated("AmpereAsHopper", half, hopper_mma_sync, ampere_mma),
      simulated("AmpereBrainAsHopper", brain, hopper_mma_sync, ampere_mma),
      simulated("AmpereHalfResultsAsHopper", {fp16, fp16, fp16, 16}, hopper_mma_sync, ampere_mma),
      simulated("AmpereTf32AsHopper", {tf32, tf32, fp32, 8}, hopper_mma_sync, ampere_mma),
      simulated("AdaAsWgmma", fp8, hopper_wgmma, ada_mma),
      simulated("SyncAsWgmma", fp8, hopper_wgmma, hopper_mma_sync),
      simulated("WgmmaAsSync", {e4m3, e5m2, fp32, 32}, hopper_mma_sync, hopper_wgmma),
      simulated("SyncMixedAsWgmma", {e5m2, e4m3, fp16, 32}, hopper_wgmma, hopper_mma_sync),
      changed("VoltaLike", half, hopper_wgmma,
              [](tensor_setting& s) {
                s.group = 4;
                s.alignment_bits = 23;
                s.floor = -131;
              }),
      changed("NearestSums", brain, hopper_wgmma,
              [](tensor_setting& s) { s.rounding = rounding::nearest_even; }),
      changed("DownwardCuts", half, hopper_wgmma,
              [](tensor_setting& s) { s.cut = rounding::downward; }),
      changed("NearestCutsAndWideSums", fp8, hopper_wgmma,
              [](tensor_setting& s) {
                s.cut = rounding::nearest_even;
                s.alignment_bits = 17;
                s.fraction_bits = 20;
              }),
      changed("NoFloorNormalized", brain, hopper_wgmma,
              [](tensor_setting& s) {
                s.floor = std::nullopt;
                s.subnormals = subnormal_operands::normalized;
              }),
  };
}

class Fit : public ::testing::TestWithParam<subject> {};

TEST_P(Fit, FindsTheParametersThatMadeTheResults) {
  const subject& s = GetParam();
  const tensor_setting row = row_setting(s.unit, s.operands);
  const int each = s.operands.products == 32 ? 256 : 512;
  const std::vector<observation> seen = results_by(s.truth, s.operands, each, 7);
  const fit_result found = fit(s.operands, row, seen);
  EXPECT_LT(found.row_explains, seen.size());
  EXPECT_TRUE(found.best.empty());
  EXPECT_NE(std::find(found.exact.begin(), found.exact.end(), s.truth), found.exact.end())
      << found.exact.size() << " others";

  // What is left besides is the same on other operands: it cannot be told apart.
  const std::vector<observation> others = results_by(s.truth, s.operands, each, 8);
  for (const tensor_setting& e : found.exact) {
    const numerics::accumulate_rule rule = rule_of(s.operands, e);
    const auto wrong = std::count_if(others.begin(), others.end(), [&](const observation& o) {
      return result_of(rule, o.x) != o.d;
    });
    EXPECT_EQ(wrong, 0) << text_of(e);
  }
  RecordProperty("open", open_parameters(found.exact));
  std::printf("%s: %zu of %llu settings, the nearest: %s; open: %s\n", s.name, found.exact.size(),
              static_cast<unsigned long long>(found.tried),
              found.exact.empty() ? "-" : text_of(found.exact.front()).c_str(),
              open_parameters(found.exact).c_str());
}

INSTANTIATE_TEST_SUITE_P(Simulated, Fit, ::testing::ValuesIn(subjects()),
                         [](const auto& i) { return std::string(i.param.name); });

TEST(FitOfNothingKnown, ReportsTheBest) {
  const shape s = {fp16, fp16, fp32, 16};
  const tensor_setting row = row_setting(hopper_wgmma, s);
  tensor_setting near = row_setting(ampere_mma, s);
  std::vector<observation> seen = results_by(near, s, 64, 9);
  std::uint64_t spoilt = 0;
  for (std::size_t i = 0; i < seen.size(); i += 50, ++spoilt) seen[i].d ^= 0x100;
  const fit_result found = fit(s, row, seen);
  EXPECT_TRUE(found.exact.empty());
  ASSERT_FALSE(found.best.empty());
  EXPECT_LE(found.best.size(), 3u);
  EXPECT_EQ(found.best.front().explained, seen.size() - spoilt);
  EXPECT_LT(found.row_explains, found.best.front().explained);
  const tensor_setting& best = found.best.front().setting;
  EXPECT_EQ(best.group, near.group);
  EXPECT_EQ(best.alignment_bits, near.alignment_bits);
}

TEST(Setting, OfEveryRowIsItsRule) {
  word_stream words(3);
  for (const support::tensor_instruction& i : support::all_tensor_instructions()) {
    const shape s = {i.a, i.b, i.result, i.products};
    const auto rule = numerics::accumulate_rule_of(i.row, i.a, i.b, i.result, i.products);
    const auto again = rule_of(s, setting_of(rule));
    for (int f = 0; f < family_count; ++f) {
      const case_codes x = draw_case(s, static_cast<family>(f), words);
      EXPECT_EQ(result_of(again, x), result_of(rule, x)) << support::text_of(i);
    }
    EXPECT_EQ(setting_of(again), setting_of(rule)) << support::text_of(i);
  }
}

TEST(Setting, EveryRowIsOnTheGrid) {
  for (const support::tensor_instruction& i : support::all_tensor_instructions()) {
    const shape s = {i.a, i.b, i.result, i.products};
    const setting_grid all(s);
    const auto setting =
        setting_of(numerics::accumulate_rule_of(i.row, i.a, i.b, i.result, i.products));
    EXPECT_TRUE(all.is_distinct(setting)) << support::text_of(i);
    for (int a = 0; a < axis_count; ++a) {
      const auto& values = all.values(static_cast<axis>(a));
      EXPECT_NE(
          std::find(values.begin(), values.end(), row_of(static_cast<axis>(a)).value(setting)),
          values.end())
          << support::text_of(i) << ": " << row_of(static_cast<axis>(a)).name;
    }
  }
}

TEST(OpenParameters, AreNamedWithTheirValues) {
  tensor_setting s = row_setting(hopper_wgmma, {fp16, fp16, fp32, 16});
  std::vector<tensor_setting> all;
  EXPECT_EQ(open_parameters(std::vector{s}), "");
  for (const int floor : {-137, -136, -135, -133}) {
    for (const auto place : {sum_place::first_step, sum_place::last_addition}) {
      s.floor = floor;
      s.place = place;
      all.push_back(s);
    }
  }
  EXPECT_EQ(open_parameters(all), "floor -137 to -135, -133; sum in the first step, added last");
  all.back().floor = std::nullopt;
  EXPECT_EQ(open_parameters(all),
            "floor none, -137 to -135, -133; sum in the first step, added last; not in every "
            "combination");
}

}  // namespace
}  // namespace samebits::backends::tensor_cores
