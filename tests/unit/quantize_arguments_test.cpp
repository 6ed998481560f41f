// Refused arguments of quantization: each message names its argument, and nothing is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>

#include "samebits/error.hpp"
#include "samebits/quantize.hpp"
#include "support/backends.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

/// Calls that would succeed, for a test to spoil in one place.
class QuantizeArguments : public ::testing::Test {
 protected:
  QuantizeArguments() {
    source_.fill(1.5f);
    target_.fill(untouched);
    in_ = view_of_codes(format_id::fp32, static_cast<const float*>(source_.data()), 4, 20);
    outputs_ = {.codes = view_of_codes(format_id::e4m3, target_.data(), 4, 20),
                .scales = view_of_codes(format_id::fp32, target_.data() + 80, 4, 2),
                .codes_transposed = view_of_codes(format_id::e4m3, target_.data() + 112, 20, 4),
                .scales_transposed = view_of_codes(format_id::fp32, target_.data() + 192, 2, 4),
                .statistics = nullptr};
    options_.tile = {1, 16};
  }

  template <class Error, class Call>
  void expect_error(const Call& call, const std::string& argument, const std::string& expected) {
    const std::string text = support::refusal_of<Error>(call);
    EXPECT_EQ(text.substr(0, argument.size()), argument);
    EXPECT_NE(text.find(expected), std::string::npos) << text;
    for (const std::uint8_t byte : target_) ASSERT_EQ(byte, untouched) << "something was written";
  }
  template <class Error = invalid_argument>
  void expect_refused(const std::string& argument, const std::string& expected) {
    const auto calls = {true, false};
    for (const bool workspace : calls) {
      expect_error<Error>(
          [&] {
            if (workspace) {
              static_cast<void>(quantize_workspace(in_, outputs_, options_, where_));
            } else {
              quantize(in_, outputs_, options_, where_);
            }
          },
          argument, expected);
    }
  }

  static constexpr std::uint8_t untouched = 0xA5;
  std::array<float, 128> source_;
  alignas(4) std::array<std::uint8_t, 256> target_;
  const_matrix_view in_;
  quantize_outputs outputs_;
  quantize_options options_;
  executor where_;
};

TEST_F(QuantizeArguments, TheUnspoiledCallWorks) {
  quantize(in_, outputs_, options_, where_);
  EXPECT_EQ(std::count(target_.begin() + 224, target_.end(), untouched), 32);
  EXPECT_EQ(target_[0], 0x7E);
}

TEST_F(QuantizeArguments, Formats) {
  for (const format_id f : {format_id::fp64, format_id::tf32, format_id::e4m3}) {
    in_.format = f;
    expect_refused("in: format must be one of fp32, fp16, bf16", std::string(name(f)));
  }
  in_.format = format_id::fp32;
  outputs_.codes.format = format_id::e4m3fnuz;
  expect_refused("outputs.codes: format must be one of e4m3, e5m2", "got e4m3fnuz");
  outputs_.codes.format = format_id::e5m2;
  expect_refused("outputs.codes_transposed: format", "that of codes, e5m2, got e4m3");
  outputs_.codes.format = format_id::e4m3;
  outputs_.scales.format = format_id::e8m0;
  expect_refused("outputs.scales_transposed: format must be that of scales, e8m0", "got fp32");
  outputs_.scales_transposed.format = format_id::e8m0;
  expect_refused("outputs: scales in e8m0 need a scale rule whose scales are powers of two", "te");
  outputs_.scales_transposed.format = format_id::fp32;
  outputs_.scales.format = format_id::fp16;
  expect_refused("outputs.scales: format must be one of fp32, e8m0", "fp16");
  in_.format = static_cast<format_id>(99);
  expect_refused("in: format", "format_id");
}

TEST_F(QuantizeArguments, Shapes) {
  outputs_.codes.cols = 19;
  expect_refused("outputs.codes: shape", "[4, 20], got [4, 19]");
  outputs_.codes.cols = 20;
  outputs_.scales.cols = 1;
  expect_refused("outputs.scales: shape", "[4, 2], got [4, 1]");
  outputs_.scales.cols = 2;
  std::swap(outputs_.codes_transposed.rows, outputs_.codes_transposed.cols);
  expect_refused("outputs.codes_transposed: shape", "[20, 4], got [4, 20]");
  std::swap(outputs_.codes_transposed.rows, outputs_.codes_transposed.cols);
  outputs_.scales_transposed.rows = 4;
  expect_refused("outputs.scales_transposed: shape", "[2, 4], got [4, 4]");
}

TEST_F(QuantizeArguments, NothingWanted) {
  outputs_.codes = outputs_.codes_transposed = {};
  expect_refused("outputs: codes or codes_transposed", "data");
}

TEST_F(QuantizeArguments, Tiles) {
  for (const tile_shape t : {tile_shape{1, 1},
                             {1, 8},
                             {1, 100},
                             {128, 64},
                             {0, 128},
                             {128, 0},
                             {2, 2},
                             {1, -128},
                             {-1, 0},
                             {512, 512},
                             {0, 2},
                             {2, 0}}) {
    options_.tile = t;
    expect_refused("tile must be", std::to_string(t.rows) + ", " + std::to_string(t.cols));
  }
  EXPECT_THROW(static_cast<void>(scales_shape(4, 4, {3, 3})), invalid_argument);
  EXPECT_THROW(static_cast<void>(scales_shape(-1, 4, {1, 16})), invalid_argument);
}

TEST_F(QuantizeArguments, Bounds) {
  const float nan = std::bit_cast<float>(0x7FC00000u);
  const float inf = std::numeric_limits<float>::infinity();
  for (const float eps : {-1.0f, -0x1p-149f, inf, -inf, nan, -nan}) {
    options_.eps = eps;
    expect_refused("options.eps", "finite and >= 0");
  }
  options_.eps = 0;
  for (const float upper : {0.0f, -0.0f, -1.0f, -inf, nan}) {
    options_.upper_bound = upper;
    expect_refused("options.upper_bound", "> 0");
  }
  options_.upper_bound = 0x1p-149f;
  options_.eps = -0.0f;
  EXPECT_NO_THROW(quantize(in_, outputs_, options_, where_));
}

TEST_F(QuantizeArguments, Options) {
  options_.rounding = rounding::toward_zero;
  expect_refused("options.rounding must be nearest_even or stochastic", "toward_zero");
  options_.rounding = rounding::stochastic;
  options_.random.bits = 33;
  expect_refused("options.random.bits", "33");
  options_ = {.tile = {1, 16}, .scale = static_cast<scale_rule>(enum_count<scale_rule>)};
  expect_refused("options.scale", "scale_rule");
  options_ = {.tile = {1, 16}, .nonfinite = static_cast<nonfinite>(enum_count<nonfinite>)};
  expect_refused("options.nonfinite", "nonfinite");
  options_ = {.tile = {1, 16}, .scale_overflow = static_cast<scale_overflow>(2)};
  expect_refused("options.scale_overflow", "scale_overflow");
  options_ = {.tile = {1, 16}, .overflow = static_cast<overflow>(3)};
  expect_refused("options.overflow", "overflow");
  options_ = {.tile = {1, 16}, .nan = static_cast<nan_policy>(2)};
  expect_refused("options.nan", "nan_policy");
}

TEST_F(QuantizeArguments, InverseScales) {
  const std::array<float, 8> given = {};
  options_.inverse_scales = view_of_codes(format_id::fp32, given.data(), 2, 4);
  expect_refused("options.inverse_scales: shape", "[4, 2], got [2, 4]");
  options_.inverse_scales = view_of_codes(format_id::fp16, given.data(), 4, 2);
  expect_refused("options.inverse_scales: format must be fp32", "fp16");
  options_.inverse_scales = view_of_codes(format_id::fp32, target_.data() + 80, 4, 2);
  expect_refused("outputs.scales: overlaps options.inverse_scales", "");
  options_.inverse_scales = view_of_codes(format_id::fp32, given.data(), 4, 2);
  outputs_.scales.format = outputs_.scales_transposed.format = format_id::e8m0;
  options_.scale = scale_rule::pow2;
  expect_refused("outputs: scales in e8m0", "options.inverse_scales");
}

TEST_F(QuantizeArguments, Overlaps) {
  outputs_.scales.data = target_.data() + 76;
  expect_refused("outputs.scales: overlaps outputs.codes", "");
  outputs_.scales.data = target_.data() + 80;
  outputs_.codes_transposed.data = target_.data() + 111;
  expect_refused("outputs.codes_transposed: overlaps outputs.scales", "");
  outputs_.codes_transposed.data = target_.data() + 112;
  in_.data = target_.data() + 176;
  in_.row_stride = 0;
  expect_refused("outputs.codes_transposed: overlaps in", "");
}

TEST_F(QuantizeArguments, SharedElements) {
  outputs_.codes.row_stride = 19;
  expect_refused("outputs.codes: elements share memory", "row_stride 19");
}

TEST_F(QuantizeArguments, MemoryAndExecutors) {
  outputs_.scales.space = memory_space::device;
  expect_refused("outputs.scales: must lie in the same memory", "");
  outputs_.scales.space = memory_space::host;
  where_.threads = -1;
  expect_refused("where.threads", "-1");
  where_.threads = 1;
  where_.backend = "abacus";
  expect_refused("backend 'abacus'", "reference");
  where_.backend = {};
  in_ = on_device(in_);
  outputs_ = {.codes = on_device(outputs_.codes)};
  expect_refused<unsupported>("no backend for device memory", "reference");
}

TEST_F(QuantizeArguments, Dequantize) {
  const const_matrix_view codes = outputs_.codes;
  const const_matrix_view scales = outputs_.scales;
  std::array<float, 80> out_data{};
  const matrix_view out = view_of(out_data.data(), 4, 20);
  const auto refused = [&](const const_matrix_view& c, const const_matrix_view& s,
                           const matrix_view& o, const tile_shape& t, const std::string& argument,
                           const std::string& expected) {
    expect_error<invalid_argument>([&] { dequantize(c, s, o, t); }, argument, expected);
  };
  refused(in_, scales, out, {1, 16}, "codes: format", "fp32");
  refused(codes, in_, out, {1, 16}, "scales: shape", "[4, 2], got [4, 20]");
  refused(codes, scales, outputs_.codes_transposed, {1, 16}, "out: format", "e4m3");
  refused(codes, scales, out, {1, 32}, "scales: shape", "[4, 1], got [4, 2]");
  refused(codes, scales, view_of(out_data.data(), 20, 4), {1, 16}, "out: shape", "[4, 20]");
  refused(codes, scales, out, {1, 17}, "tile must be", "1, 17");
  matrix_view shared = out;
  shared.row_stride = 3;
  refused(codes, scales, shared, {1, 16}, "out: elements share memory", "row_stride 3");
  const_matrix_view inside = codes;
  inside.data = out_data.data();
  refused(inside, scales, out, {1, 16}, "out: overlaps codes", "");
  inside = scales;
  inside.data = out_data.data();
  refused(codes, inside, out, {1, 16}, "out: overlaps scales", "");
  float one = 1;
  const const_matrix_view tensor_scale = view_of(&one, 1, 1);
  const auto refused_level = [&](const second_level& level, const std::string& expected) {
    expect_error<invalid_argument>(
        [&] {
          dequantize(codes, scales, out, {1, 16}, level);
        },
        "level.tensor_scale: ", expected);
  };
  refused_level({scale_rule::te, tensor_scale}, "got te");
  refused_level({scale_rule::nvfp4_te, {}}, "got nvfp4_te");
  refused_level({scale_rule::nvfp4_te, codes}, "format must be");
}

TEST_F(QuantizeArguments, TwoLevels) {
  float one = 1;
  options_.tensor_scale = view_of(&one, 1, 1);
  expect_refused("options.tensor_scale: a scale rule with two levels", "got te");
  options_.tensor_scale = {};
  outputs_.tensor_scale = view_of(&one, 1, 1);
  expect_refused("outputs.tensor_scale: a scale rule with two levels", "got te");
  options_.scale = scale_rule::nvfp4_te;
  options_.tensor_scale = outputs_.tensor_scale;
  expect_refused("outputs.tensor_scale: overlaps options.tensor_scale", "");
  options_.tensor_scale = {};
  outputs_.tensor_scale.cols = 2;
  expect_refused("outputs.tensor_scale: shape", "[1, 1], got [1, 2]");
  outputs_.tensor_scale = {};
  options_.scale = scale_rule::nvfp4_4over6_mae;
  options_.tile = {1, 16};
  outputs_.scales_transposed = {};
  outputs_.scales.format = format_id::e8m0;
  expect_refused("outputs: scales in e8m0", "nvfp4_4over6_mae");
  outputs_.scales = {};
  options_.tile = {1, 32};
  expect_refused("tile must be {1, 16}, {16, 1} or {16, 16} for nvfp4_4over6_mae", "{1, 32}");
}

}  // namespace
}  // namespace samebits
