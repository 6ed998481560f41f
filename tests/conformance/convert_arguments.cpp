// Refused arguments of array conversion: each message names its argument, and nothing is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "samebits/convert.hpp"
#include "samebits/error.hpp"
#include "support/backends.hpp"

namespace samebits {
namespace {

bool runs_here(const std::string& backend) {
  const std::vector<std::string> all = support::supported_backends();
  return std::find(all.begin(), all.end(), backend) != all.end();
}

/// A call that would succeed, for a test to spoil in one place.
class ConvertArguments : public ::testing::Test {
 protected:
  ConvertArguments() {
    source_.fill(1.5f);
    target_.fill(untouched);
    in_ = view_of_codes(format_id::fp32, static_cast<const float*>(source_.data()), 4, 8);
    out_ = view_of_codes(format_id::e4m3, target_.data(), 4, 8);
  }

  /// The call throws Error, its message starts with `argument` and contains `expected`.
  template <class Error = invalid_argument>
  void expect_refused(const std::string& argument, const std::string& expected) {
    try {
      convert(in_, out_, options_, where_);
      ADD_FAILURE() << "nothing was refused; expected a complaint about " << argument;
    } catch (const Error& e) {
      const std::string text = e.what();
      EXPECT_EQ(text.rfind(argument, 0), 0u) << text;
      EXPECT_NE(text.find(expected), std::string::npos) << text;
    }
    for (const std::uint8_t byte : target_) ASSERT_EQ(byte, untouched) << "something was written";
  }

  static constexpr std::uint8_t untouched = 0xA5;
  std::array<float, 64> source_;
  std::array<std::uint8_t, 256> target_;
  const_matrix_view in_;
  matrix_view out_;
  convert_options options_;
  executor where_;
};

TEST_F(ConvertArguments, TheUnspoiledCallWorks) {
  convert(in_, out_, options_, where_);
  for (std::size_t i = 0; i < target_.size(); ++i) {
    EXPECT_EQ(target_[i], i < 32 ? 0x3C : untouched);
  }
}

TEST_F(ConvertArguments, UnequalShapes) {
  out_.cols = 7;
  expect_refused("out: shape", "[4, 8], got [4, 7]");
  out_.cols = 8;
  out_.rows = 5;
  expect_refused("out: shape", "[4, 8], got [5, 8]");
  in_.rows = 2;  // the same number of elements is not the same shape
  in_.cols = 16;
  out_.rows = 4;
  expect_refused("out: shape", "[2, 16], got [4, 8]");
}

TEST_F(ConvertArguments, EmptyIsNoExcuseForUnequalShapes) {
  in_.rows = 0;
  expect_refused("out: shape", "[0, 8], got [4, 8]");
}

TEST_F(ConvertArguments, NegativeSizes) {
  in_.rows = -1;
  expect_refused("in: sizes", "[-1, 8]");
  in_.rows = 4;
  out_.cols = std::numeric_limits<std::int64_t>::min();
  expect_refused("out: sizes", "got [4, -9223372036854775808]");
}

TEST_F(ConvertArguments, NegativeStrides) {
  in_.row_stride = -8;
  expect_refused("in: strides", "row_stride -8");
  in_.row_stride = 8;
  out_.col_stride = -1;
  expect_refused("out: strides", "col_stride -1");
}

TEST_F(ConvertArguments, NullData) {
  in_.data = nullptr;
  expect_refused("in: data is null", "[4, 8]");
  in_.data = source_.data();
  out_.data = nullptr;
  expect_refused("out: data is null", "[4, 8]");
}

TEST_F(ConvertArguments, ViewsBeyondTheAddressSpace) {
  in_.rows = out_.rows = std::int64_t{1} << 40;
  in_.row_stride = out_.row_stride = std::int64_t{1} << 40;
  expect_refused("in: ", "2^63");
  in_.row_stride = 0;
  expect_refused("out: ", "2^63");
  in_ = {source_.data(),    format_id::fp32, std::numeric_limits<std::int64_t>::max(), 8, 0, 0,
         memory_space::host};
  expect_refused("in: ", "2^63");
}

TEST_F(ConvertArguments, OutElementsThatShareMemory) {
  for (const auto& [row_stride, col_stride] :
       {std::pair{0, 1}, {8, 0}, {7, 1}, {1, 3}, {1, 1}, {0, 0}, {14, 2}}) {
    out_.row_stride = row_stride;
    out_.col_stride = col_stride;
    expect_refused("out: elements share memory", "row_stride " + std::to_string(row_stride));
  }
}

TEST_F(ConvertArguments, StridesOfAnAxisOfOneElementDoNotMatter) {
  in_.rows = out_.rows = 1;
  out_.row_stride = 0;
  EXPECT_NO_THROW(convert(in_, out_));
  in_.cols = out_.cols = 1;
  out_.col_stride = 0;
  EXPECT_NO_THROW(convert(in_, out_));
}

TEST_F(ConvertArguments, Overlap) {
  in_ = view_of_codes(format_id::e5m2, static_cast<const std::uint8_t*>(target_.data()), 4, 8);
  EXPECT_NO_THROW(convert(in_, out_));  // the same memory, the same strides
  target_.fill(untouched);
  out_.data = target_.data() + 1;  // one byte on
  expect_refused("out: overlaps in", "disjoint");
  out_.data = target_.data() + 31;  // its first byte is the last of in
  expect_refused("out: overlaps in", "disjoint");
  out_.data = target_.data();
  out_.row_stride = 9;  // other strides
  expect_refused("out: overlaps in", "strides");
  out_.row_stride = 8;
  in_.format = format_id::fp16;  // other element size
  expect_refused("out: overlaps in", "element sizes");
}

TEST_F(ConvertArguments, NeighboursDoNotOverlap) {
  in_ = view_of_codes(format_id::e5m2, static_cast<const std::uint8_t*>(target_.data()), 4, 8);
  out_.data = target_.data() + 32;
  EXPECT_NO_THROW(convert(in_, out_));
}

TEST_F(ConvertArguments, RandomBitCount) {
  options_.rounding = rounding::stochastic;
  for (const int bits : {0, -1, 33, 64, std::numeric_limits<int>::max()}) {
    options_.random.bits = bits;
    expect_refused("options.random.bits", "1..32, got " + std::to_string(bits));
  }
}

TEST_F(ConvertArguments, RandomBitCountIsNotReadWithoutStochasticRounding) {
  options_.random.bits = 0;
  EXPECT_NO_THROW(convert(in_, out_, options_));
}

TEST_F(ConvertArguments, ValuesThatAreNoEnumerators) {
  options_.rounding = static_cast<rounding>(7);
  expect_refused("options.rounding", "rounding");
  options_ = {};
  options_.overflow = static_cast<overflow>(3);
  expect_refused("options.overflow", "overflow");
  options_ = {};
  options_.nan = static_cast<nan_policy>(255);
  expect_refused("options.nan", "nan_policy");
  options_ = {};
  in_.format = static_cast<format_id>(13);
  expect_refused("in: format", "format_id");
  in_.format = format_id::fp32;
  out_.format = static_cast<format_id>(200);
  expect_refused("out: format", "format_id");
}

TEST_F(ConvertArguments, Threads) {
  where_.threads = -1;
  expect_refused("where.threads", ">= 0, got -1");
}

TEST_F(ConvertArguments, UnknownBackend) {
  where_.backend = "abacus";
  expect_refused("backend 'abacus'", "reference");
}

TEST_F(ConvertArguments, ViewsInDifferentMemory) {
  in_.space = memory_space::device;
  expect_refused("out: must lie in the same memory as in", "host or device");
  in_.space = memory_space::host;
  out_.space = memory_space::device;
  expect_refused("out: must lie in the same memory as in", "host or device");
}

TEST_F(ConvertArguments, DeviceMemoryOnACpuBackend) {
  in_.space = out_.space = memory_space::device;
  for (const char* backend : {"reference", "avx2", "avx512"}) {
    if (!runs_here(backend)) continue;
    where_.backend = backend;
    expect_refused("backend '" + std::string(backend) + "' works on host memory",
                   "lie in device memory");
  }
}

/// This program is linked without the CUDA library.
TEST_F(ConvertArguments, DeviceMemoryWithoutADeviceBackend) {
  in_.space = out_.space = memory_space::device;
  expect_refused<unsupported>("no backend for device memory", "reference");
}

}  // namespace
}  // namespace samebits
