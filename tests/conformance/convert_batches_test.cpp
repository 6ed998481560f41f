// The batched property over host backends; and that it finds and shrinks planted errors.
#include "conformance/convert_batches.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/backends.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

constexpr int pairs = format_count * format_count;

void convert_all(const std::vector<batch_call>& calls, const std::string& backend) {
  for (const batch_call& c : calls) convert(c.in, c.out, c.options, {backend, c.threads});
}

/// A target that spoils some calls after they were carried out.
template <class Spoil>
batch_target planted(Spoil spoil) {
  return {"planted", [spoil](std::span<std::byte>, const std::vector<batch_call>& calls) {
            convert_all(calls, "reference");
            for (const batch_call& c : calls) spoil(c);
          }};
}

std::byte& byte_of(const matrix_view& v, std::int64_t row, std::int64_t col) {
  return static_cast<std::byte*>(
      v.data)[(row * v.row_stride + col * v.col_stride) * storage_bytes(v.format)];
}

TEST(ConvertBatches, HostBackends) {
  for (const std::string& backend : supported_backends()) {
    batch_checker checker(
        {backend, [&](std::span<std::byte>,
                      const std::vector<batch_call>& calls) { convert_all(calls, backend); }},
        {16 / static_cast<int>(effort_divisor), pairs,
         rc::detail::configuration().testParams.seed});
    const batch_report report = checker.run();
    EXPECT_EQ(report.failure, "");
    EXPECT_EQ(report.cases, static_cast<std::uint64_t>(16 / effort_divisor * pairs));
    EXPECT_GT(report.elements, 100 * report.cases);
  }
}

TEST(ConvertBatches, EveryPairTakesItsTurnInOneBlockOfMemory) {
  std::set<std::pair<format_id, format_id>> seen;
  int dense = 0;
  bool inside = true;
  batch_checker checker(
      {"spy",
       [&](std::span<std::byte> memory, const std::vector<batch_call>& calls) {
         EXPECT_EQ(calls.size(), static_cast<std::size_t>(pairs));
         EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 256, 0u);
         for (const batch_call& c : calls) {
           seen.emplace(c.in.format, c.out.format);
           dense += c.out.col_stride == 1 && c.out.row_stride == c.out.cols;
           for (const void* p : {c.in.data, static_cast<const void*>(c.out.data)}) {
             inside &= p >= memory.data() && p < memory.data() + memory.size();
           }
         }
         convert_all(calls, "reference");
       }},
      {1, pairs, 1});
  EXPECT_EQ(checker.run().failure, "");
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(pairs));
  EXPECT_TRUE(inside);
  EXPECT_GT(dense, pairs / 3);
  EXPECT_LT(dense, pairs * 9 / 10);
}

TEST(ConvertBatches, AWrongElementIsFoundAndShrunk) {
  // The error needs four rows and a gap between the columns of the output.
  const auto spoil = [](const batch_call& c) {
    if (c.out.rows < 4 || c.out.cols == 0 || c.out.col_stride == 1) return;
    byte_of(c.out, 3, 0) ^= std::byte{1};
  };
  const batch_report report = batch_checker(planted(spoil), {20, 64, 3}).run();
  ASSERT_TRUE(report.smallest) << "not found";
  EXPECT_EQ(report.smallest->in.rows, 4);
  EXPECT_EQ(report.smallest->in.cols, 1);
  EXPECT_NE(report.smallest->out.col_stride, 1);
  EXPECT_EQ(report.smallest->in.col_stride, 1) << "does not matter";
  EXPECT_EQ(report.smallest->random.seed, 0u) << "does not matter";
  for (const char* part : {"by planted", "element [3, 0]", "expected 0x", "smallest failing case",
                           "RC_PARAMS=\"seed=3\""}) {
    EXPECT_NE(report.failure.find(part), std::string::npos) << part << " in " << report.failure;
  }
}

TEST(ConvertBatches, OneModeOfOnePairIsEnough) {
  const auto spoil = [](const batch_call& c) {
    if (c.in.format != format_id::fp16 || c.out.format != format_id::e2m3) return;
    if (c.options.round != rounding::to_odd || c.out.rows == 0 || c.out.cols == 0) return;
    byte_of(c.out, c.out.rows - 1, c.out.cols - 1) ^= std::byte{0x20};  // the sign
  };
  const batch_report report = batch_checker(planted(spoil), {40, pairs, 4}).run();
  ASSERT_TRUE(report.smallest) << "not found";
  EXPECT_EQ(report.smallest->in.rows * report.smallest->in.cols, 1);
  EXPECT_NE(report.failure.find("fp16 to e2m3, to_odd"), std::string::npos) << report.failure;
}

TEST(ConvertBatches, WritesOutsideTheViewsAreFound) {
  const auto behind = [](const batch_call& c) {
    if (c.out.rows > 2) (&byte_of(c.out, 0, 0))[-1] = std::byte{0};
  };
  batch_report report = batch_checker(planted(behind), {4, 64, 5}).run();
  EXPECT_NE(report.failure.find("wrote outside its output"), std::string::npos) << report.failure;
  ASSERT_TRUE(report.smallest);
  EXPECT_EQ(report.smallest->out.rows, 3);

  const auto input = [](const batch_call& c) {
    if (c.in.rows > 2 && c.in.cols > 0) {
      *static_cast<std::byte*>(const_cast<void*>(c.in.data)) ^= std::byte{1};
    }
  };
  report = batch_checker(planted(input), {4, 64, 6}).run();
  EXPECT_NE(report.failure.find("wrote to its input"), std::string::npos) << report.failure;
}

TEST(ConvertBatches, WhatGoesWrongInABatchOnlyIsSaid) {
  batch_target target{"crowded", [](std::span<std::byte>, const std::vector<batch_call>& calls) {
                        convert_all(calls, "reference");
                        if (calls.size() == 1) return;
                        for (const batch_call& c : calls) {
                          if (c.out.rows != 0 && c.out.cols != 0) {
                            byte_of(c.out, 0, 0) ^= std::byte{1};
                          }
                        }
                      }};
  const batch_report report = batch_checker(std::move(target), {1, 64, 7}).run();
  EXPECT_NE(report.failure.find("in a batch only, not alone"), std::string::npos);
}

TEST(ConvertBatches, PairsAndRulesCanBeNarrowed) {
  batch_target target = planted([](const batch_call& c) {
    EXPECT_EQ(c.in.format, format_id::fp32);
    EXPECT_EQ(c.out.format, format_id::bf16);
    EXPECT_EQ(c.options.round, rounding::nearest_even);
  });
  target.pairs = {{format_id::fp32, format_id::bf16}};
  target.rules = {{rounding::nearest_even, overflow::ieee}, {rounding::nearest_even}};
  EXPECT_EQ(batch_checker(std::move(target), {2, 64, 8}).run().failure, "");
}

}  // namespace
}  // namespace samebits::support
