// The fit of tensor core parameters on results that the model made with other parameters.
#include "tensor_core_probe/fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "support/effort.hpp"
#include "tensor_cores/tensor_cases.hpp"

namespace samebits::backends::tensor_cores {
namespace {

using enum format_id;
using enum tensor_unit;

accumulate_rule row_rule(tensor_unit unit, const shape& s) {
  const auto row = find_tensor_row(unit, *tensor_operands_of(s.a, s.b));
  return numerics::accumulate_rule_of(*row, s.a, s.b, s.result, s.products);
}

/// As many results of each family as a check searches with.
std::vector<tensor_core_result> results_by(const accumulate_rule& truth, const shape& s, int each,
                                           std::uint64_t seed) {
  word_stream words(seed);
  std::vector<tensor_core_result> seen;
  for (int f = 0; f < family_count; ++f) {
    for (int i = 0; i < each; ++i) {
      const case_codes x = draw_case(s, f, words);
      seen.push_back({{}, s, x, result_of(truth, x)});
    }
  }
  return seen;
}

struct subject {
  const char* name;
  shape operands;
  tensor_unit unit;
  accumulate_rule truth;
};

/// The row of `unit`, changed.
template <class Change>
subject changed(const char* name, const shape& s, tensor_unit unit, const Change& change) {
  accumulate_rule truth = row_rule(unit, s);
  change(truth);
  return {name, s, unit, truth};
}

subject simulated(const char* name, const shape& s, tensor_unit unit, tensor_unit truth) {
  return {name, s, unit, row_rule(truth, s)};
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
              [](accumulate_rule& s) {
                s.group = 4;
                s.alignment_bits = 23;
                s.floor = -131;
              }),
      changed("NearestSums", brain, hopper_wgmma,
              [](accumulate_rule& s) { s.rounding = rounding::nearest_even; }),
      changed("DownwardCuts", half, hopper_wgmma,
              [](accumulate_rule& s) { s.cut = rounding::downward; }),
      changed("NearestCutsAndWideSums", fp8, hopper_wgmma,
              [](accumulate_rule& s) {
                s.cut = rounding::nearest_even;
                s.alignment_bits = 17;
                set_fraction_bits(s, 20);
              }),
      changed("NoFloorNormalized", brain, hopper_wgmma,
              [](accumulate_rule& s) {
                s.floor = no_floor;
                set_subnormals(s, subnormal_operands::normalized);
              }),
  };
}

class Fit : public ::testing::TestWithParam<subject> {};

TEST_P(Fit, FindsTheParametersThatMadeTheResults) {
  const subject& s = GetParam();
  const accumulate_rule row = row_rule(s.unit, s.operands);
  const int each = s.operands.products == 32 ? 256 : 512;
  const std::vector<tensor_core_result> seen = results_by(s.truth, s.operands, each, 7);
  const fit_result found = fit(row, seen);
  EXPECT_LT(found.row_explains, seen.size());
  EXPECT_EQ(found.best.size(), 1u);
  EXPECT_EQ(std::ranges::count(found.exact, std::array{0, 0},
                               [&](const accumulate_rule& e) { return distance(e, s.truth); }),
            1)
      << found.exact.size() << " others";

  // What is left besides is the same on other operands: it cannot be told apart.
  const std::vector<tensor_core_result> others = results_by(s.truth, s.operands, each, 8);
  for (const accumulate_rule& rule : found.exact) {
    const auto wrong =
        std::count_if(others.begin(), others.end(),
                      [&](const tensor_core_result& r) { return result_of(rule, r.x) != r.d; });
    EXPECT_EQ(wrong, 0) << text_of(rule);
  }
  RecordProperty("open", found.open);
  std::printf("%s: %zu of %llu settings, the nearest: %s; open: %s\n", s.name, found.exact.size(),
              static_cast<unsigned long long>(found.tried),
              found.exact.empty() ? "-" : text_of(found.exact.front()).c_str(), found.open.c_str());
}

INSTANTIATE_TEST_SUITE_P(Simulated, Fit, ::testing::ValuesIn(subjects()),
                         [](const auto& i) { return std::string(i.param.name); });

TEST(FitOfNothingKnown, ReportsTheBest) {
  const shape s = {fp16, fp16, fp32, 16};
  const accumulate_rule row = row_rule(hopper_wgmma, s);
  const accumulate_rule near = row_rule(ampere_mma, s);
  std::vector<tensor_core_result> seen = results_by(near, s, 64, 9);
  std::uint64_t spoilt = 0;
  for (std::size_t i = 0; i < seen.size(); i += 50, ++spoilt) seen[i].d ^= 0x100;
  const fit_result found = fit(row, seen);
  EXPECT_TRUE(found.exact.empty());
  ASSERT_FALSE(found.best.empty());
  EXPECT_LE(found.best.size(), 3u);
  EXPECT_EQ(found.best.front().explained, seen.size() - spoilt);
  EXPECT_LT(found.row_explains, found.best.front().explained);
  const accumulate_rule& best = found.best.front().rule;
  EXPECT_EQ(best.group, near.group);
  EXPECT_EQ(best.alignment_bits, near.alignment_bits);
}

TEST(Parameters, OfEveryRowAreItsRule) {
  word_stream words(3);
  for (const support::tensor_instruction& i : support::all_tensor_instructions()) {
    const shape s = {i.a, i.b, i.result, i.products};
    const auto rule = numerics::accumulate_rule_of(i.row, i.a, i.b, i.result, i.products);
    const parameter_values values = values_to_try(rule);
    EXPECT_TRUE(is_distinct(rule)) << support::text_of(i);
    auto again = rule;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const int value = parameters[p].value(rule);
      EXPECT_EQ(std::ranges::count(values[p], value), 1)
          << support::text_of(i) << ": " << parameters[p].name;
      parameters[p].set(again, values[p].back());
      EXPECT_EQ(parameters[p].value(again), values[p].back()) << parameters[p].name;
      parameters[p].set(again, value);
    }
    for (int f = 0; f < family_count; ++f) {
      const case_codes x = draw_case(s, f, words);
      EXPECT_EQ(result_of(again, x), result_of(rule, x)) << support::text_of(i);
    }
  }
}

TEST(OpenParameters, AreNamedWithTheirValues) {
  accumulate_rule s = row_rule(hopper_wgmma, {fp16, fp16, fp32, 16});
  std::vector<accumulate_rule> all;
  EXPECT_EQ(open_parameters(std::vector{s}), "");
  for (const int floor : {-137, -136, -135, -133}) {
    for (const auto place : {sum_place::first_step, sum_place::last_addition}) {
      s.floor = floor;
      s.place = place;
      all.push_back(s);
    }
  }
  EXPECT_EQ(open_parameters(all), "floor -137 to -135, -133; sum in the first step, added last");
  all.back().floor = no_floor;
  EXPECT_EQ(open_parameters(all),
            "floor none, -137 to -135, -133; sum in the first step, added last; not in every "
            "combination");
}

}  // namespace
}  // namespace samebits::backends::tensor_cores
