// That the check finds wrong calls, and makes the cases small.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "engine/cases/convert.hpp"
#include "engine/cases/matmul.hpp"
#include "engine/cases/operations.hpp"
#include "engine/suites/rapidcheck.hpp"

namespace samebits::support {
namespace {

using spoil_function = std::function<void(const std::vector<matrix_view>& views)>;

/// The reference, whose results are spoiled after the call.
class planted_target final : public array_target {
 public:
  explicit planted_target(spoil_function spoil) : spoil_(std::move(spoil)) {}
  [[nodiscard]] std::string_view backend() const override { return "planted"; }
  [[nodiscard]] executor where(int threads) const override { return {"reference", threads}; }
  [[nodiscard]] returned_values run(const any_case& c, const call_site& site) const override {
    returned_values all = c.call(site);
    spoil_(site.views);
    return all;
  }
  void over(std::span<std::byte> memory, const std::function<void(std::byte*)>& work) override {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 256, 0u);
    work(memory.data());
  }

 private:
  spoil_function spoil_;
};

check_report checked(const array_operation& op, const spoil_function& spoil,
                     const check_effort& effort) {
  planted_target target(spoil);
  return check_operation(op, target, effort, *host_target("reference"));
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
  ASSERT_EQ(report.smallest.size(), 1u) << "not found";
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
  ASSERT_EQ(report.smallest.size(), 1u) << "not found";
  const std::string mark = "RC_PARAMS=\"seed=";
  const std::uint64_t seed =
      std::stoull(report.failure.substr(report.failure.find(mark) + mark.size()));
  EXPECT_EQ(seed, report.smallest[0].seed);
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
  ASSERT_EQ(report.smallest.size(), 1u) << "not found";
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
  // Wrong from the 40th call on the same memory on.
  class forgetful_target final : public array_target {
   public:
    [[nodiscard]] std::string_view backend() const override { return "planted"; }
    [[nodiscard]] executor where(int threads) const override { return {"reference", threads}; }
    void over(std::span<std::byte> memory, const std::function<void(std::byte*)>& work) override {
      calls_ = 0;
      work(memory.data());
    }
    [[nodiscard]] returned_values run(const any_case& c, const call_site& site) const override {
      returned_values all = c.call(site);
      if (++calls_ > 40) put_code(site.views[0], 0, 0, code_at(site.views[0], 0, 0) ^ 1);
      return all;
    }

   private:
    mutable int calls_ = 0;
  } target;
  const check_report report =
      check_operation(convert_operation({}), target, {64, 7}, *host_target("reference"));
  expect_parts(report.failure, {"in a batch only, not alone", "seed=7 max_success=64"});
}

TEST(OperationCheck, OtherBytesThanTheGuardsSurroundSomeProblems) {
  std::set<std::byte> seen;
  const bool no = false;
  for (const shrinking_problem& p :
       problem_batches(convert_operation({}), 9, 100, no)({}, 0).value().problems) {
    for (const case_buffer& b : p.what.memory()) seen.insert(b.memory.bytes().back());
  }
  EXPECT_EQ(seen.size(), 5u);
}

TEST(OperationCheck, ShrinkingOfLargeCasesEnds) {
  array_case large;
  large.in = large.out = dense_layout(1, 5000);
  int calls = 0;
  const auto spoil = [&calls](const std::vector<matrix_view>& v) {
    ++calls;
    if (v[1].cols > 2500) byte_of(v[1], 0, 2500) ^= std::byte{1};
  };
  const check_report report =
      checked(listed_operation("convert", conversions(), std::vector{large}), spoil,
              {.cases = 1, .shrinking_elements = 100'000});
  ASSERT_EQ(report.smallest.size(), 1u) << "not found";
  EXPECT_GE(calls, 10);
  EXPECT_LE(calls, 40);
}

/// From random cases, one random change after another.
void expect_simpler_cases_are_allowed(const array_operation& op) {
  const auto reference = host_target("reference");
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const word_source next = words_from(seed);
    std::shared_ptr<const any_case> now = op.draw(seed, next);
    for (int steps = 0; now; ++steps) {
      ASSERT_LT(steps, 4000) << "does not end: " << now->text();
      const problem p{now};
      const comparison found = compare({&p, 1}, *reference, *reference);
      ASSERT_EQ(found.text, "") << now->text();
      std::size_t count = 0;
      while (now->simpler(count)) ++count;
      now = now->simpler(count == 0 ? 0 : next() % count);
    }
  }
}

TEST(OperationCheck, SimplerCasesAreAllowedAndEnd) {
  std::vector<array_operation> all = {convert_operation({}),
                                      compute_operation({}),
                                      reduction_operation(),
                                      matmul_operation({8, 8, 64}, random_kinds::all),
                                      quantize_operation(),
                                      dequantize_operation(),
                                      codebook_operation(),
                                      quantize_list_operation(),
                                      evaluate_operation(),
                                      row_operation(),
                                      fused_operation(),
                                      gated_quantize_operation(),
                                      norm_quantize_operation(),
                                      norm_operation(),
                                      axis_operation(),
                                      training_operation(),
                                      attention_operation(),
                                      rotary_operation(),
                                      optimizer_operation(),
                                      store_operation(),
                                      gradient_reduction_operation(),
                                      scaler_operation(),
                                      sharded_scaler_operation()};
  for (int i = 0; i < list_call_count; ++i) {
    all.push_back(list_operation(static_cast<list_call>(i)));
  }
  for (const array_operation& op : all) {
    SCOPED_TRACE(op.name);
    expect_simpler_cases_are_allowed(op);
  }
}

TEST(OperationCheck, NothingElseIsReported) {
  const check_report report = checked(convert_operation({}), [](const auto&) {}, {100, 8});
  EXPECT_EQ(report.failure, "");
  EXPECT_EQ(report.cases, 100u);
  EXPECT_GT(report.elements, 10'000u);
}

}  // namespace
}  // namespace samebits::support
