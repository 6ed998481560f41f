// Options by name: the tables, and values from text.
#include "samebits/options.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <string_view>

#include "samebits/error.hpp"
#include "samebits/loss_scaler.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

/// A text that sets an option to another value than its default.
std::string_view other_value(bool value) { return value ? "false" : "true"; }
std::string_view other_value(const tile_shape&) { return "16x32"; }
template <class Value>
std::string_view other_value(const Value& value) {
  if constexpr (listed_enum<Value>) {
    return table_of<Value>[value == static_cast<Value>(0) ? 1 : 0].name;
  } else if constexpr (std::is_same_v<Value, format_id>) {
    return value == format_id::e5m2 ? "e4m3" : "e5m2";
  } else {
    return "97";
  }
}
template <class Value>
std::string_view other_value(const std::optional<Value>& value) {
  return other_value(value.value_or(Value{}));
}

template <class T>
class Options : public testing::Test {};
using every_table = testing::Types<
    random_stream, convert_options, compute_options, evaluate_options, quantize_options, recipe,
    delayed_settings, scale_layout_options, accumulator, matmul_options, product_rule, dot_options,
    rotary_options, softmax_options, axis_reduction_options, attention_options, layer_norm_options,
    norm_parameter_options, embedding_options, cross_entropy_options, gradient_reduction,
    optimizer_settings, store_options, native_scaling, torch_scaling, apex_scaling,
    apex_amp_scaling, megatron_scaling, deepspeed_scaling>;
TYPED_TEST_SUITE(Options, every_table);

TYPED_TEST(Options, EveryNameSetsAMemberOfItsOwn) {
  TypeParam options{};
  std::set<std::string_view> names;
  std::set<const void*> members;
  for_each_option(options, [&](const auto& row, auto& value) {
    const auto before = value;
    EXPECT_NO_THROW(set_option(options, row.name, other_value(value))) << row.name;
    EXPECT_FALSE(value == before) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(members.insert(&value).second) << row.name;
  });
}

template <class T>
void expect_refused(std::string_view name, std::string_view text, const std::string& message) {
  T options{};
  EXPECT_EQ(support::refusal_of([&] { set_option(options, name, text); }), message);
}

TEST(OptionText, WhatIsRefused) {
  expect_refused<dot_options>("precision", "fp16",
                              "precision: must be one of fp32, fp64, got 'fp16'");
  expect_refused<dot_options>("sum", "tree", "'sum' is not an option; there are: precision, order");
  expect_refused<convert_options>("seed", "-1", "seed: must be an integer >= 0, got '-1'");
  expect_refused<convert_options>("random_bits", "1.5",
                                  "random_bits: must be an integer, got '1.5'");
  expect_refused<quantize_options>("tile", "128",
                                   "tile: must be ROWSxCOLS, such as 1x128, got '128'");
  expect_refused<quantize_options>("eps", "", "eps: must be a number, got ''");
  expect_refused<optimizer_settings>("nesterov", "yes",
                                     "nesterov: must be true or false, got 'yes'");
  scaling_settings settings = default_settings(scaling_policy::deepspeed);
  EXPECT_THROW(set_option(settings, "growth_factor", "2"), invalid_argument);
}

TEST(OptionText, NumbersAreRoundedOnce) {
  quantize_options options;
  set_option(options, "eps", "0x1.000001000001p0");  // above the midpoint of two binary32 numbers
  EXPECT_EQ(options.eps, 0x1.000002p0f);
  set_option(options, "upper_bound", "inf");
  EXPECT_EQ(options.upper_bound, std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace samebits
