// Refused arguments of array conversion and arithmetic: each message names its argument, and nothing
// is written.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "engine/suites/refusals.hpp"
#include "samebits/array_arithmetic.hpp"
#include "samebits/convert.hpp"
#include "support/backends.hpp"

namespace samebits::support {
namespace {

constexpr std::uint8_t untouched = 0xA5;
constexpr std::int64_t max_size = std::numeric_limits<std::int64_t>::max();

/// A conversion of 1.5 that would succeed.
struct conversion {
  conversion() {
    source.fill(1.5f);
    target.fill(untouched);
  }
  void run() { convert(in, out, options, where); }
  void expect_untouched() const {
    for (const std::uint8_t byte : target) ASSERT_EQ(byte, untouched) << "something was written";
  }
  /// Makes the input e5m2 codes of the result's memory.
  void share_memory() {
    in = view_of_codes(format_id::e5m2, static_cast<const std::uint8_t*>(target.data()), 4, 8);
  }
  void set_out_strides(std::int64_t row, std::int64_t col) {
    out.row_stride = row;
    out.col_stride = col;
  }

  std::array<float, 64> source;
  std::array<std::uint8_t, 256> target;
  const_matrix_view in =
      view_of_codes(format_id::fp32, static_cast<const float*>(source.data()), 4, 8);
  matrix_view out = view_of_codes(format_id::e4m3, target.data(), 4, 8);
  convert_options options;
  executor where;
};

TEST(ConvertArguments, WhatIsAllowed) {
  conversion plain;
  plain.run();
  for (std::size_t i = 0; i < plain.target.size(); ++i) {
    EXPECT_EQ(plain.target[i], i < 32 ? 0x3C : untouched);
  }
  void (*const allowed[])(conversion&) = {
      // Strides of an axis of one element do not matter.
      [](conversion& c) { c.in.rows = c.out.rows = 1, c.out.row_stride = 0; },
      [](conversion& c) {
        c.in.rows = c.out.rows = c.in.cols = c.out.cols = 1;
        c.set_out_strides(0, 0);
      },
      [](conversion& c) { c.share_memory(); },  // the same strides
      [](conversion& c) { c.share_memory(), c.out.data = c.target.data() + 32; },  // neighbours
      [](conversion& c) { c.options.random.bits = 0; },  // not read without stochastic rounding
  };
  for (const auto change : allowed) {
    conversion c;
    change(c);
    EXPECT_NO_THROW(c.run());
  }
}

TEST(ConvertArguments, Views) {
  expect_refused<conversion>({
      {"out: shape", "[4, 8], got [4, 7]", [](auto& c) { c.out.cols = 7; }},
      {"out: shape", "[4, 8], got [5, 8]", [](auto& c) { c.out.rows = 5; }},
      {"out: shape", "[2, 16], got [4, 8]", [](auto& c) { c.in.rows = 2, c.in.cols = 16; }},
      {"out: shape", "[0, 8], got [4, 8]", [](auto& c) { c.in.rows = 0; }},
      {"in: sizes", "[-1, 8]", [](auto& c) { c.in.rows = -1; }},
      {"out: sizes", "got [4, -9223372036854775808]",
       [](auto& c) { c.out.cols = std::numeric_limits<std::int64_t>::min(); }},
      {"in: strides", "row_stride -8", [](auto& c) { c.in.row_stride = -8; }},
      {"out: strides", "col_stride -1", [](auto& c) { c.out.col_stride = -1; }},
      {"in: data is null", "[4, 8]", [](auto& c) { c.in.data = nullptr; }},
      {"out: data is null", "[4, 8]", [](auto& c) { c.out.data = nullptr; }},
      {"in: ", "2^63",
       [](auto& c) {
         c.in.rows = c.out.rows = c.in.row_stride = c.out.row_stride = std::int64_t{1} << 40;
       }},
      {"out: ", "2^63",
       [](auto& c) {
         c.in.rows = c.out.rows = c.out.row_stride = std::int64_t{1} << 40;
         c.in.row_stride = 0;
       }},
      {"in: ", "2^63",
       [](auto& c) {
         c.in = {c.source.data(), format_id::fp32, max_size, 8, 0, 0, memory_space::host};
       }},
      {"in: format", "format_id", [](auto& c) { c.in.format = static_cast<format_id>(13); }},
      {"out: format", "format_id", [](auto& c) { c.out.format = static_cast<format_id>(200); }},
  });
}

TEST(ConvertArguments, SharedMemory) {
  expect_refused<conversion>({
      {"out: elements share memory", "row_stride 0", [](auto& c) { c.set_out_strides(0, 1); }},
      {"out: elements share memory", "row_stride 8", [](auto& c) { c.set_out_strides(8, 0); }},
      {"out: elements share memory", "row_stride 7", [](auto& c) { c.set_out_strides(7, 1); }},
      {"out: elements share memory", "row_stride 1", [](auto& c) { c.set_out_strides(1, 3); }},
      {"out: elements share memory", "row_stride 1", [](auto& c) { c.set_out_strides(1, 1); }},
      {"out: elements share memory", "row_stride 0", [](auto& c) { c.set_out_strides(0, 0); }},
      {"out: elements share memory", "row_stride 14", [](auto& c) { c.set_out_strides(14, 2); }},
      {"out: overlaps in", "disjoint",
       [](auto& c) { c.share_memory(), c.out.data = c.target.data() + 1; }},
      {"out: overlaps in", "disjoint",  // its first byte is the last of in
       [](auto& c) { c.share_memory(), c.out.data = c.target.data() + 31; }},
      {"out: overlaps in", "strides", [](auto& c) { c.share_memory(), c.out.row_stride = 9; }},
      {"out: overlaps in", "element sizes",
       [](auto& c) { c.share_memory(), c.in.format = format_id::fp16; }},
  });
}

template <int Bits>
void set_bits(conversion& c) {
  c.options.rounding = rounding::stochastic;
  c.options.random.bits = Bits;
}

TEST(ConvertArguments, OptionsAndExecutors) {
  expect_refused<conversion>({
      {"options.random.bits", "1..32, got 0", set_bits<0>},
      {"options.random.bits", "1..32, got -1", set_bits<-1>},
      {"options.random.bits", "1..32, got 33", set_bits<33>},
      {"options.random.bits", "1..32, got 64", set_bits<64>},
      {"options.random.bits", "1..32, got 2147483647", set_bits<2147483647>},
      {"options.rounding", "rounding",
       [](auto& c) { c.options.rounding = static_cast<rounding>(7); }},
      {"options.overflow", "overflow",
       [](auto& c) { c.options.overflow = static_cast<overflow>(3); }},
      {"options.nan", "nan_policy", [](auto& c) { c.options.nan = static_cast<nan_policy>(255); }},
      {"where.threads", ">= 0, got -1", [](auto& c) { c.where.threads = -1; }},
      {"backend 'abacus'", "reference", [](auto& c) { c.where.backend = "abacus"; }},
      {"out: must lie in the same memory as in", "host or device",
       [](auto& c) { c.in.space = memory_space::device; }},
      {"out: must lie in the same memory as in", "host or device",
       [](auto& c) { c.out.space = memory_space::device; }},
      {"backend 'reference' works on host memory", "lie in device memory",
       [](auto& c) {
         c.in.space = c.out.space = memory_space::device, c.where.backend = "reference";
       }},
  });
  for (const std::string& backend : supported_backends()) {
    conversion c;
    c.in.space = c.out.space = memory_space::device;
    c.where.backend = backend;
    EXPECT_THROW(c.run(), invalid_argument) << backend;
  }
  // This program is linked without the CUDA library.
  expect_refused<conversion, unsupported>(
      {{"no backend for device memory", "reference",
        [](auto& c) { c.in.space = c.out.space = memory_space::device; }}});
}

/// An fma of 1.5 that would succeed.
struct computation {
  computation() {
    source.fill(1.5f);
    target.fill(untouched);
    each_memory.fill(static_cast<flags>(untouched));
  }
  void run() { raised = compute_with_flags(op, in, out, options, each, where); }
  void expect_untouched() const {
    for (const std::uint8_t byte : target) ASSERT_EQ(byte, untouched) << "something was written";
    for (const flags byte : each_memory) {
      ASSERT_EQ(byte, static_cast<flags>(untouched)) << "flags were written";
    }
  }
  void share_memory_of_b() {
    in.b = view_of_codes(format_id::e5m2, static_cast<const std::uint8_t*>(target.data()), 4, 8);
  }

  std::array<float, 64> source;
  std::array<std::uint8_t, 256> target;
  std::array<flags, 64> each_memory;
  operation op = operation::fma;
  const_matrix_view codes =
      view_of_codes(format_id::fp32, static_cast<const float*>(source.data()), 4, 8);
  array_operands in = {codes, codes, codes};
  matrix_view out = view_of_codes(format_id::e4m3, target.data(), 4, 8);
  compute_options options;
  flags_view each = {each_memory.data(), 8, 1};
  executor where;
  flags raised = flags::invalid;
};

TEST(ComputeArguments, WhatIsAllowed) {
  computation plain;
  plain.run();
  EXPECT_EQ(plain.raised, flags::none);
  for (std::size_t i = 0; i < plain.target.size(); ++i) {
    EXPECT_EQ(plain.target[i], i < 32 ? 0x47 : untouched) << i;  // 1.5 * 1.5 + 1.5 = 3.75
  }
  computation one;  // operands that are not taken are not looked at
  one.op = operation::sqrt;
  one.in.b.rows = -1;
  one.in.c.format = static_cast<format_id>(200);
  EXPECT_NO_THROW(compute(one.op, one.in, one.out, one.options, one.where));
  computation same;  // the same memory, the same strides
  same.share_memory_of_b();
  EXPECT_NO_THROW(compute(same.op, same.in, same.out));
  computation plain_rounding;
  plain_rounding.options = {.rounding = rounding::upward, .random = {.bits = 33}};
  EXPECT_NO_THROW(plain_rounding.run());
}

TEST(ComputeArguments, Refused) {
  expect_refused<computation>({
      {"in.b: sizes", "[-1, 8]", [](auto& c) { c.op = operation::mul, c.in.b.rows = -1; }},
      {"op: ", "samebits::operation",
       [](auto& c) { c.op = static_cast<operation>(enum_count<operation>); }},
      {"in.b: format", "e4m3, e5m2, got e8m0", [](auto& c) { c.in.b.format = format_id::e8m0; }},
      {"in.b: format", "got fp64",
       [](auto& c) { c.in.b.format = format_id::fp64, c.in.b.rows = c.in.b.cols = 0; }},
      {"out: format", "got e4m3fnuz", [](auto& c) { c.out.format = format_id::e4m3fnuz; }},
      {"in.c: shape", "that of out, [4, 8], got [4, 7]", [](auto& c) { c.in.c.cols = 7; }},
      {"in.a: shape", "[4, 8], got [0, 8]", [](auto& c) { c.in.a.rows = 0; }},
      {"in.a: strides", "row_stride -8", [](auto& c) { c.in.a.row_stride = -8; }},
      {"in.b: data is null", "[4, 8]", [](auto& c) { c.in.b.data = nullptr; }},
      {"out: elements share memory", "col_stride 0", [](auto& c) { c.out.col_stride = 0; }},
      {"out: overlaps in.b", "disjoint",
       [](auto& c) { c.share_memory_of_b(), c.out.data = c.target.data() + 1; }},
      {"out: overlaps in.b", "strides",
       [](auto& c) { c.share_memory_of_b(), c.out.row_stride = 9; }},
      {"out: overlaps in.b", "strides",  // one element for many
       [](auto& c) { c.share_memory_of_b(), c.in.b.col_stride = 0; }},
      {"each: elements share memory", "col_stride 0", [](auto& c) { c.each.col_stride = 0; }},
      {"each: strides", "col_stride -1", [](auto& c) { c.each.col_stride = -1; }},
      {"each: overlaps out", "out",
       [](auto& c) {
         c.each = {reinterpret_cast<flags*>(c.target.data()) + 31, 8, 1};
       }},
      {"each: overlaps in.a", "in.a",
       [](auto& c) {
         c.each = {reinterpret_cast<flags*>(c.source.data()) + 31, 8, 1};
       }},
      {"options.rounding", "rounding",
       [](auto& c) { c.options.rounding = static_cast<rounding>(7); }},
      {"options.overflow", "overflow",
       [](auto& c) { c.options.overflow = static_cast<overflow>(3); }},
      {"options.nan", "nan_policy", [](auto& c) { c.options.nan = static_cast<nan_policy>(255); }},
      {"options.random.bits", "1..32, got 33",
       [](auto& c) { c.options = {.rounding = rounding::stochastic, .random = {.bits = 33}}; }},
      {"where.threads", ">= 0, got -1", [](auto& c) { c.where.threads = -1; }},
      {"backend 'abacus'", "reference", [](auto& c) { c.where.backend = "abacus"; }},
      {"in.b: must lie in the same memory", "out", [](auto& c) { c.in.b = on_device(c.in.b); }},
      {"backend 'reference' works on host memory", "device",
       [](auto& c) {
         c.where.backend = "reference";
         c.in = {on_device(c.in.a), on_device(c.in.b), on_device(c.in.c)};
         c.out = on_device(c.out);
       }},
  });
}

/// The call whose flags stay on the device.
struct enqueued_computation : computation {
  void run() {
    std::uint32_t all = 0;
    enqueue_compute_with_flags(op, in, out, &all, options, each, where);
  }
};

TEST(ComputeArguments, FlagsThatStayOnTheDevice) {
  expect_refused<enqueued_computation>({
      {"out: must lie in device memory", "", [](auto&) {}},
      {"in.b: shape", "", [](auto& c) { c.in.b.cols = 7; }},
  });
}

}  // namespace
}  // namespace samebits::support
