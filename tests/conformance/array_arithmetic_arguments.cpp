// Refused arguments of array arithmetic: each message names its argument, and nothing is written.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "samebits/array_arithmetic.hpp"
#include "samebits/error.hpp"

namespace samebits {
namespace {

/// A call that would succeed, for a test to spoil in one place.
class ComputeArguments : public ::testing::Test {
 protected:
  ComputeArguments() {
    source_.fill(1.5f);
    target_.fill(untouched);
    each_memory_.fill(static_cast<flags>(untouched));
    const auto* codes = static_cast<const float*>(source_.data());
    in_.a = view_of_codes(format_id::fp32, codes, 4, 8);
    in_.b = in_.c = in_.a;
    out_ = view_of_codes(format_id::e4m3, target_.data(), 4, 8);
    each_ = {each_memory_.data(), 8, 1};
  }

  /// The call throws Error, its message starts with `argument` and contains `expected`.
  template <class Error = invalid_argument>
  void expect_refused(const std::string& argument, const std::string& expected) {
    try {
      compute_with_flags(op_, in_, out_, options_, each_, where_);
      ADD_FAILURE() << "nothing was refused; expected a complaint about " << argument;
    } catch (const Error& e) {
      const std::string text = e.what();
      EXPECT_EQ(text.rfind(argument, 0), 0u) << text;
      EXPECT_NE(text.find(expected), std::string::npos) << text;
    }
    for (const std::uint8_t byte : target_) ASSERT_EQ(byte, untouched) << "something was written";
    for (const flags byte : each_memory_) {
      ASSERT_EQ(byte, static_cast<flags>(untouched)) << "flags were written";
    }
  }

  static constexpr std::uint8_t untouched = 0xA5;
  std::array<float, 64> source_;
  std::array<std::uint8_t, 256> target_;
  std::array<flags, 64> each_memory_;
  operation op_ = operation::fma;
  array_operands in_ = {};
  matrix_view out_;
  compute_options options_;
  flags_view each_;
  executor where_;
};

TEST_F(ComputeArguments, TheUnspoiledCallWorks) {
  EXPECT_EQ(compute_with_flags(op_, in_, out_, options_, each_, where_), flags::none);
  for (std::size_t i = 0; i < target_.size(); ++i) {
    EXPECT_EQ(target_[i], i < 32 ? 0x47 : untouched) << i;  // 1.5 * 1.5 + 1.5 = 3.75
  }
}

TEST_F(ComputeArguments, OperandsThatAreNotTakenAreNotLookedAt) {
  op_ = operation::sqrt;
  in_.b.rows = -1;
  in_.c.format = static_cast<format_id>(200);
  EXPECT_NO_THROW(compute(op_, in_, out_, options_, where_));
  target_.fill(untouched);
  op_ = operation::mul;
  expect_refused("in.b: sizes", "[-1, 8]");
}

TEST_F(ComputeArguments, Operations) {
  op_ = static_cast<operation>(enum_count<operation>);
  expect_refused("op: ", "samebits::operation");
}

TEST_F(ComputeArguments, FormatsWithoutArithmetic) {
  in_.b.format = format_id::e8m0;
  expect_refused("in.b: format", "e4m3, e5m2, got e8m0");
  in_.b.format = format_id::fp64;
  in_.b.rows = in_.b.cols = 0;
  expect_refused("in.b: format", "got fp64");
  out_.format = format_id::e4m3fnuz;
  expect_refused("out: format", "got e4m3fnuz");
}

TEST_F(ComputeArguments, UnequalShapes) {
  in_.c.cols = 7;
  expect_refused("in.c: shape", "that of out, [4, 8], got [4, 7]");
  in_.c = in_.b;
  in_.a.rows = 0;
  expect_refused("in.a: shape", "[4, 8], got [0, 8]");
}

TEST_F(ComputeArguments, StridesAndData) {
  in_.a.row_stride = -8;
  expect_refused("in.a: strides", "row_stride -8");
  in_.a.row_stride = 8;
  in_.b.data = nullptr;
  expect_refused("in.b: data is null", "[4, 8]");
  in_.b = in_.a;
  out_.col_stride = 0;
  expect_refused("out: elements share memory", "col_stride 0");
}

TEST_F(ComputeArguments, Overlap) {
  in_.b = view_of_codes(format_id::e5m2, static_cast<const std::uint8_t*>(target_.data()), 4, 8);
  out_.data = target_.data() + 1;
  expect_refused("out: overlaps in.b", "disjoint");
  out_.data = target_.data();
  out_.row_stride = 9;
  expect_refused("out: overlaps in.b", "strides");
  out_.row_stride = 8;
  in_.b.col_stride = 0;  // one element for many
  expect_refused("out: overlaps in.b", "strides");
  in_.b.col_stride = 1;
  EXPECT_NO_THROW(compute(op_, in_, out_));  // the same memory, the same strides
}

TEST_F(ComputeArguments, Flags) {
  each_.col_stride = 0;
  expect_refused("each: elements share memory", "col_stride 0");
  each_.col_stride = -1;
  expect_refused("each: strides", "col_stride -1");
  each_ = {reinterpret_cast<flags*>(target_.data()) + 31, 8, 1};
  expect_refused("each: overlaps out", "out");
  each_ = {reinterpret_cast<flags*>(source_.data()) + 31, 8, 1};
  expect_refused("each: overlaps in.a", "in.a");
}

TEST_F(ComputeArguments, Rule) {
  options_.rounding = static_cast<rounding>(7);
  expect_refused("options.rounding", "rounding");
  options_ = {};
  options_.overflow = static_cast<overflow>(3);
  expect_refused("options.overflow", "overflow");
  options_ = {};
  options_.nan = static_cast<nan_policy>(255);
  expect_refused("options.nan", "nan_policy");
  options_ = {.rounding = rounding::stochastic, .random = {.bits = 33}};
  expect_refused("options.random.bits", "1..32, got 33");
  options_.rounding = rounding::upward;
  EXPECT_NO_THROW(compute(op_, in_, out_, options_));
}

TEST_F(ComputeArguments, Executors) {
  where_.threads = -1;
  expect_refused("where.threads", ">= 0, got -1");
  where_.threads = 1;
  where_.backend = "abacus";
  expect_refused("backend 'abacus'", "reference");
}

TEST_F(ComputeArguments, FlagsThatStayOnTheDevice) {
  std::uint32_t raised = 0;
  const auto expect = [&](const std::string& text) {
    try {
      enqueue_compute_with_flags(op_, in_, out_, &raised, options_, each_, where_);
      ADD_FAILURE() << "nothing was refused; expected: " << text;
    } catch (const invalid_argument& e) {
      EXPECT_EQ(std::string(e.what()).rfind(text, 0), 0u) << e.what();
    }
  };
  expect("out: must lie in device memory");
  in_.b.cols = 7;
  expect("in.b: shape");
}

TEST_F(ComputeArguments, Memory) {
  in_.b = on_device(in_.b);
  expect_refused("in.b: must lie in the same memory", "out");
  where_.backend = "reference";
  in_.a = on_device(in_.a);
  in_.c = on_device(in_.c);
  out_ = on_device(out_);
  expect_refused("backend 'reference' works on host memory", "device");
}

}  // namespace
}  // namespace samebits
