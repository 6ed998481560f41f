// That the check finds wrong calls, and makes the cases small.
#include "operations/check.hpp"

#include <gtest/gtest.h>
#include <functional>

#include <set>
#include <utility>

#include "operations/operations.hpp"

namespace samebits::support {
namespace {

using spoil_function = std::function<void(const std::vector<matrix_view>& views)>;

/// A case whose calls are spoiled afterwards wherever they are not the reference's.
class spoiled_case final : public random_case {
 public:
  spoiled_case(std::unique_ptr<random_case> original, spoil_function spoil)
      : original_(std::move(original)), spoil_(std::move(spoil)) {}

  [[nodiscard]] std::vector<case_buffer> memory() const override { return original_->memory(); }
  [[nodiscard]] returned_values call(const call_site& site) const override {
    returned_values all = original_->call(site);
    if (site.target.backend() == "reference") return all;
    spoil_(site.views);
    return all;
  }
  [[nodiscard]] std::string text() const override { return original_->text(); }
  [[nodiscard]] std::unique_ptr<random_case> simpler(
      const std::function<bool(const random_case&)>& fails) const override {
    std::unique_ptr<spoiled_case> found;
    auto next = original_->simpler([&](const random_case& c) {
      return fails(
          spoiled_case(std::shared_ptr<const random_case>(&c, [](const auto*) {}), spoil_));
    });
    if (!next) return nullptr;
    return std::make_unique<spoiled_case>(std::move(next), spoil_);
  }

 private:
  spoiled_case(std::shared_ptr<const random_case> borrowed, spoil_function spoil)
      : original_(std::move(borrowed)), spoil_(std::move(spoil)) {}

  std::shared_ptr<const random_case> original_;
  spoil_function spoil_;
};

/// The reference by another name.
class planted_target final : public array_target {
 public:
  [[nodiscard]] std::string_view backend() const override { return "planted"; }
  [[nodiscard]] memory_space space() const override { return memory_space::host; }
  [[nodiscard]] executor where(int threads) const override { return {"reference", threads}; }
  void over(std::span<std::byte> memory, const std::function<void(std::byte*)>& work) override {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 256, 0u);
    work(memory.data());
  }
  void copy(const matrix_view&, const matrix_view&) const override {}
  void simulate_ranks(int, const std::function<void(communicator&)>&) const override {}
};

check_report checked(array_operation op, const spoil_function& spoil, const check_effort& effort) {
  op.draw = [draw = std::move(op.draw), spoil](std::uint64_t seed) {
    return std::make_unique<spoiled_case>(draw(seed), spoil);
  };
  planted_target target;
  return check_operation(op, target, effort);
}

std::byte& byte_of(const matrix_view& v, std::int64_t row, std::int64_t col) {
  return static_cast<std::byte*>(
      v.data)[(row * v.row_stride + col * v.col_stride) * storage_bytes(v.format)];
}

void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
}

TEST(OperationCheck, AWrongElementIsFoundAndShrunk) {
  // The error needs four rows and a gap between the columns of the output.
  const auto spoil = [](const std::vector<matrix_view>& v) {
    const matrix_view& out = v[1];
    if (out.rows >= 4 && out.cols > 0 && out.col_stride > 1) byte_of(out, 3, 0) ^= std::byte{1};
  };
  const check_report report = checked(convert_operation({}), spoil, {1000, 3});
  ASSERT_TRUE(report.smallest) << "not found";
  expect_parts(report.failure,
               {"convert on planted: out [3, 0]", "got      0x", "expected 0x",
                "out [4, 1] strides", "in [4, 1] strides 1, 1 elements, 0 bytes off",
                "random seed 0", "\n    in [4, 1] 0x0 0x0 0x0 0x0", "max_success=1\""});
}

TEST(OperationCheck, TheLineThatRepeatsItDrawsTheCaseAgain) {
  const auto spoil = [](const std::vector<matrix_view>& v) {
    if (v[1].format == format_id::e2m3 && v[1].rows > 2 && v[1].cols > 2) {
      byte_of(v[1], 2, 2) ^= std::byte{1};
    }
  };
  const check_report report = checked(convert_operation({}), spoil, {5000, 4});
  ASSERT_TRUE(report.smallest) << "not found";
  const std::string mark = "RC_PARAMS=\"seed=";
  const std::uint64_t seed =
      std::stoull(report.failure.substr(report.failure.find(mark) + mark.size()));
  EXPECT_EQ(seed, 4 + report.cases - 1);
  const check_report again = checked(convert_operation({}), spoil, {1, seed});
  EXPECT_EQ(again.failure, report.failure);
}

TEST(OperationCheck, CodesShrinkToThoseThatMatter) {
  // Wrong where one element is not zero.
  const auto spoil = [](const std::vector<matrix_view>& v) {
    const matrix_view &in = v[0], &codes = v[2];
    if (codes.data == nullptr || in.rows < 2 || in.cols < 3) return;
    const std::byte sign_and_exponent = (&byte_of(in, 1, 2))[storage_bytes(in.format) - 1];
    if (sign_and_exponent != std::byte{0}) byte_of(codes, 1, 2) ^= std::byte{1};
  };
  const check_report report = checked(quantize_operation(), spoil, {500, 5});
  ASSERT_TRUE(report.smallest) << "not found";
  expect_parts(report.failure,
               {"quantize on planted: codes [1, 2]", "in [2, 3] 0x0 0x0 0x0 0x0 0x0 0x3"});
}

TEST(OperationCheck, WritesOutsideTheViewsAreFound) {
  const auto behind = [](const std::vector<matrix_view>& v) {
    if (v[1].rows > 2) (&byte_of(v[1], 0, 0))[-1] = std::byte{0};
  };
  check_report report = checked(convert_operation({}), behind, {300, 5});
  expect_parts(report.failure, {"wrote outside out: byte -1 from its first element", "out [3, "});
  const auto input = [](const std::vector<matrix_view>& v) {
    if (v[0].rows > 2 && v[0].cols > 0) byte_of(v[0], 0, 0) ^= std::byte{1};
  };
  report = checked(convert_operation({}), input, {300, 6});
  expect_parts(report.failure, {"in [0, 0]", "in [3, 1]"});
}

TEST(OperationCheck, WhatGoesWrongInABatchOnlyIsSaid) {
  std::set<const void*> memory;
  const auto spoil = [&](const std::vector<matrix_view>& v) {
    memory.insert(v[1].data);
    if (memory.size() < 40 || v[1].rows == 0 || v[1].cols == 0) return;
    byte_of(v[1], 0, 0) ^= std::byte{1};
    memory.clear();
  };
  const check_report report = checked(convert_operation({}), spoil, {64, 7});
  expect_parts(report.failure, {"in a batch only, not alone", "seed=7 max_success=64"});
}

TEST(OperationCheck, NothingElseIsReported) {
  const check_report report = checked(convert_operation({}), [](const auto&) {}, {100, 8});
  EXPECT_EQ(report.failure, "");
  EXPECT_EQ(report.cases, 100u);
  EXPECT_GT(report.elements, 10'000u);
}

}  // namespace
}  // namespace samebits::support
