// The autocast tables: Apex's against what its own lists said, PyTorch's for consistency.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/autocast.hpp"

namespace samebits {
namespace {

TEST(Autocast, ApexListsSayTheSame) {
  std::ifstream file(SAMEBITS_GOLDEN_AUTOCAST "/apex.txt");
  std::string function, rule;
  std::size_t count = 0;
  for (; file >> function >> rule; ++count) {
    EXPECT_EQ(name(apex_rule_of(function)), rule) << function;
  }
  // As many as there are in the table: none of it is made up.
  EXPECT_EQ(count, std::size(detail::apex_low_precision) + std::size(detail::apex_fp32) +
                       std::size(detail::apex_widest) + 1);
}

template <class... Lists>
std::vector<std::string_view> combined(const Lists&... lists) {
  std::vector<std::string_view> all;
  (all.insert(all.end(), std::begin(lists), std::end(lists)), ...);
  return all;
}

TEST(Autocast, ListsAreSortedAndDisjoint) {
  const auto check = [](const auto&... lists) {
    EXPECT_TRUE((std::is_sorted(std::begin(lists), std::end(lists)) && ...));
    std::vector<std::string_view> all = combined(lists...);
    std::sort(all.begin(), all.end());
    EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
    EXPECT_EQ(std::count(all.begin(), all.end(), "binary_cross_entropy"), 0);
  };
  check(detail::torch_low_precision, detail::torch_fp32, detail::torch_fp32_result,
        detail::torch_widest);
  check(detail::apex_low_precision, detail::apex_fp32, detail::apex_widest);
}

using enum format_id;
constexpr auto fp16_training = training_precision::mixed_fp16;
constexpr auto bf16_training = training_precision::mixed_bf16;
constexpr auto fp8_training = training_precision::mixed_fp8;

static_assert(formats_of("matmul", fp16_training, fp32) == operation_formats{fp16, fp16, fp16});
static_assert(formats_of("matmul", bf16_training, fp32) == operation_formats{bf16, bf16, bf16});
static_assert(formats_of("matmul", fp8_training, fp32) == operation_formats{bf16, bf16, bf16});
static_assert(formats_of("linear", fp8_training, bf16) == operation_formats{e4m3, e5m2, bf16});
static_assert(formats_of("linear", fp8_training, fp64) == operation_formats{fp64, fp64, fp64});
static_assert(formats_of("layer_norm", fp16_training, fp16) == operation_formats{fp32, fp32, fp32});
static_assert(formats_of("softmax", fp16_training, fp16) == operation_formats{fp16, fp32, fp32});
static_assert(formats_of("dot", fp16_training, fp32) == operation_formats{fp32, fp32, fp32});
static_assert(formats_of("relu", fp8_training, bf16) == operation_formats{bf16, bf16, bf16});
static_assert(!formats_of("binary_cross_entropy", bf16_training, fp32));

// Where the two libraries differ.
static_assert(apex_rule_of("gelu") == autocast_rule::fp32 &&
              autocast_rule_of("gelu") == autocast_rule::as_given);
static_assert(apex_rule_of("add") == autocast_rule::widest &&
              autocast_rule_of("add") == autocast_rule::as_given);
static_assert(apex_rule_of("sum") == autocast_rule::fp32 &&
              autocast_rule_of("sum") == autocast_rule::fp32_result);

static_assert(apex_level_of(opt_level::O0).model == fp32);
static_assert(apex_level_of(opt_level::O1).patch_functions && !apex_level_of(opt_level::O1).model);
static_assert(apex_level_of(opt_level::O2).master_weights == apex_choice::yes &&
              apex_level_of(opt_level::O2).batch_norm_fp32 == apex_choice::yes);
static_assert(!apex_level_of(opt_level::O3).dynamic_loss_scale &&
              apex_level_of(opt_level::O3).model == fp16);

}  // namespace
}  // namespace samebits
