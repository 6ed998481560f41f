// Rotary tables: refused arguments, and empty tables, which are allowed.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "samebits/error.hpp"
#include "samebits/rotary.hpp"
#include "samebits/types.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

class RotaryArguments : public ::testing::Test {
 protected:
  template <class Error>
  void expect_refused(const std::string& expected) {
    support::expect_refusal<Error>(expected,
                                   [&] { rotary_table(positions_, cos_, sin_, options_, where_); });
    for (const float y : memory_) ASSERT_EQ(y, 42.0f) << "something was written";
  }

  std::vector<float> memory_ = std::vector<float>(12, 42.0f);
  std::vector<std::int64_t> positions_ = {1, 2};
  std::vector<double> frequencies_ = {1, 0.5, 0.25};
  matrix_view cos_ = view_of(memory_.data(), 2, 3);
  matrix_view sin_ = view_of(memory_.data() + 6, 2, 3);
  rotary_options options_;
  executor where_;
};

TEST_F(RotaryArguments, TheUnspoiledCallWorks) {
  rotary_table(positions_, cos_, sin_, options_, where_);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(memory_[0]), 0x3F0A5140u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(memory_[6]), 0x3F576AA4u);
}
TEST_F(RotaryArguments, Counts) {
  positions_.push_back(3);
  expect_refused<invalid_argument>("positions: must be as many as rows of cos, 2, got 3");
  positions_.pop_back();
  frequencies_.pop_back();
  options_.frequencies = frequencies_;
  expect_refused<invalid_argument>(
      "options.frequencies: must be as many as columns of cos, 3, got 2");
}
TEST_F(RotaryArguments, Base) {
  for (const double base : {0.999, -2.0, std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()}) {
    options_.base = base;
    expect_refused<invalid_argument>("options.base: must be at least 1 and finite");
  }
}
TEST_F(RotaryArguments, Frequencies) {
  options_.frequencies = frequencies_;
  options_.base = 0;  // is not read
  frequencies_[2] = std::numeric_limits<double>::infinity();
  expect_refused<invalid_argument>("options.frequencies[2]: must be finite");
  frequencies_[2] = 0x1p128;
  options_.angle = rotary_angle::binary32;
  expect_refused<invalid_argument>(
      "options.frequencies[2]: must be finite in fp32 for angles in binary32");
  options_.angle = rotary_angle::exact;
  rotary_table(positions_, cos_, sin_, options_);
}
TEST_F(RotaryArguments, Angle) {
  options_.angle = static_cast<rotary_angle>(enum_count<rotary_angle>);
  expect_refused<invalid_argument>("options.angle");
}
TEST_F(RotaryArguments, Formats) {
  sin_.format = format_id::bf16;
  expect_refused<invalid_argument>("sin: format must be that of cos, fp32, got bf16");
  cos_.format = sin_.format = format_id::e4m3;
  expect_refused<invalid_argument>("cos: format must be fp32, fp16 or bf16, got e4m3");
}
TEST_F(RotaryArguments, Shapes) {
  sin_.cols = 2;
  expect_refused<invalid_argument>("sin: shape must be that of cos, [2, 3], got [2, 2]");
}
TEST_F(RotaryArguments, SharedMemory) {
  sin_ = cos_;
  expect_refused<invalid_argument>("sin");
  cos_.row_stride = 0;
  expect_refused<invalid_argument>("cos");
}
TEST_F(RotaryArguments, DeviceMemory) {
  cos_.space = memory_space::device;
  expect_refused<unsupported>("cos and sin must lie in host memory");
}
TEST_F(RotaryArguments, Executor) {
  where_ = {"nonsense"};
  expect_refused<invalid_argument>("backend 'nonsense' is unknown");
  where_ = {"", -1};
  expect_refused<invalid_argument>("threads");
}
TEST_F(RotaryArguments, EmptyTablesAreAllowed) {
  positions_.clear();
  cos_.rows = sin_.rows = 0;
  rotary_table(positions_, cos_, sin_, options_);
  positions_ = {1, 2};
  cos_ = sin_ = {nullptr, format_id::bf16, 2, 0};
  rotary_table(positions_, cos_, sin_, options_);
}

}  // namespace
}  // namespace samebits
