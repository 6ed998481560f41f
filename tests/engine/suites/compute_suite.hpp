// The suite of array arithmetic: what every executor must do, bit for bit as the scalar function
// does it (contract §10.3). Include it in one file per program and instantiate:
//
//   INSTANTIATE_TEST_SUITE_P(Host, ArrayArithmeticSuite, ::testing::ValuesIn(host_suite_targets()),
//                            name_of_suite_target);
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/core/sweeps.hpp"
#include "engine/definition.hpp"
#include "engine/suites/rapidcheck.hpp"
#include "engine/suites/suite_target.hpp"
#include "support/arithmetic_case.hpp"
#include "support/rules.hpp"

namespace samebits::support {

/// Makes the calls of cases on a target and compares all memory and flags with what the judge
/// leaves.
inline void expect_computes(array_target& target, std::vector<array_arithmetic_case> cases,
                            std::size_t step = 1, std::size_t batch = 1024,
                            const array_target& judge = function_target<array_arithmetic_case>(
                                "the definition", compute_by_definition)) {
  expect_same(listed_operation("compute", computations(), thinned(std::move(cases), step), batch),
              target, judge, 0);
}

class ArrayArithmeticSuite : public ::testing::TestWithParam<suite_target> {
 protected:
  void SetUp() override { target_ = GetParam().make(); }
  /// One format everywhere, and mixtures.
  static std::vector<std::pair<operand_formats, format_id>> mixes() {
    using enum format_id;
    std::vector<std::pair<operand_formats, format_id>> all;
    for (const format_id f : arithmetic_formats) all.push_back({{f, f, f}, f});
    all.push_back({{fp16, bf16, fp32}, e4m3});
    all.push_back({{e4m3, e5m2, fp32}, fp32});
    all.push_back({{bf16, bf16, bf16}, fp32});
    all.push_back({{e5m2, e5m2, fp16}, fp16});
    return all;
  }

  /// Operations of one, two and three operands that backends have kernels for, and one they lack.
  static constexpr std::array kernel_operations{operation::add, operation::fma, operation::sqrt,
                                                operation::rem};

  void expect_as_defined(const std::vector<problem>& problems) const {
    const function_target<array_arithmetic_case> judge("the definition", compute_by_definition);
    EXPECT_EQ(compare(problems, *target_, judge).text, "");
  }

  std::unique_ptr<array_target> target_;
};

TEST_P(ArrayArithmeticSuite, EveryOperationEveryRule) {
  constexpr std::int64_t size = 509 / static_cast<std::int64_t>(effort_divisor);
  std::vector<array_arithmetic_case> cases;
  constexpr std::array flags = {flags_asked::none, flags_asked::all, flags_asked::each};
  for (const auto& [op, mix, rule, asked] :
       combinations(all_operations(), mixes(), every_rule(), flags)) {
    cases.push_back(dense_case(op, mix.first, mix.second, 1, size, rule));
    cases.back().asked = asked;
    cases.back().content += cases.size() * 1009;
  }
  expect_computes(*target_, std::move(cases), 13);
}

TEST_P(ArrayArithmeticSuite, EveryTwoOptions) {
  const std::vector<matrix_shape> sizes = sizes_around_borders();
  std::vector<array_arithmetic_case> cases;
  // Some executors have kernels for one format, the usual rules and no flags of each element alone,
  // which half of the cases have.
  for (const bool usual : {false, true}) {
    even_draw draws;
    for (std::uint64_t i = 0; i < 6000; ++i) {
      draws.begin();
      const auto [rows, cols] = even_one_of(draws, "size", sizes);
      const operation op = even_one_of(draws, "operation", kernel_operations);
      array_arithmetic_case c;
      if (usual) {
        const format_id f = even_one_of(draws, "format", arithmetic_formats);
        c = dense_case(op, {f, f, f}, f, rows, cols);
        c.rule.overflow = draws.draw("overflow", 2) == 0 ? overflow::ieee : overflow::saturate;
        c.asked = draws.draw("with flags", 2) == 0 ? flags_asked::none : flags_asked::all;
      } else {
        const auto [from, to] = even_one_of(draws, "formats", mixes());
        c = dense_case(op, from, to, rows, cols);
        c.rule = {even_enumerator<rounding>(draws, "rounding"),
                  even_enumerator<overflow>(draws, "overflow"),
                  even_enumerator<nan_policy>(draws, "NaN policy")};
        c.asked = draws.draw("with flags", 2) == 0 ? flags_asked::none : flags_asked::each;
        c.each = even_layout(draws, "flags", rows, cols, array_side::written);
        c.random = even_stream(draws);
      }
      constexpr const char* names[] = {"a", "b", "c"};
      for (std::size_t k = 0; k < 3; ++k) {
        c.in[k] = even_layout(draws, names[k], rows, cols, array_side::read);
      }
      c.out = even_layout(draws, "out", rows, cols, array_side::written);
      c.in[0].misalignment = static_cast<std::int64_t>(draws.draw("misalignment of a", 8));
      c.in[1].misalignment = static_cast<std::int64_t>(draws.draw("misalignment of b", 8));
      c.out.misalignment = static_cast<std::int64_t>(draws.draw("misalignment of out", 8));
      constexpr int threads[] = {1, 0, 3, 8};
      c.threads = even_one_of(draws, "threads", threads);
      c.content = i;
      cases.push_back(c);
    }
    EXPECT_EQ(draws.missing(), "");
  }
  expect_computes(*target_, std::move(cases), 13);
}

TEST_P(ArrayArithmeticSuite, UnalignedDenseViews) {
  std::vector<array_arithmetic_case> cases;
  for (const auto& [f, op] : combinations(arithmetic_formats, kernel_operations)) {
    for (std::int64_t shift = 0; shift < 512; ++shift) {
      cases.push_back(dense_case(op, {f, f, f}, f, 1, 139));
      array_arithmetic_case& c = cases.back();
      c.in[0].misalignment = shift % 8;
      c.in[1].misalignment = shift / 8 % 8;
      c.in[2].misalignment = (shift * 3 + 1) % 8;
      c.out.misalignment = shift / 64;
    }
  }
  expect_computes(*target_, std::move(cases), 13);
}

TEST_P(ArrayArithmeticSuite, ViewsWithoutMemory) {
  for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 7}, {7, 0}}) {
    const matrix_view nothing{nullptr, format_id::bf16, rows, cols, cols, 1, target_->space()};
    EXPECT_NO_THROW(compute(operation::add, {nothing, nothing}, nothing, {}, target_->where(1)));
  }
}

TEST_P(ArrayArithmeticSuite, RowsLongerThanAChunkOfCopies) {
  std::vector<array_arithmetic_case> cases;
  for (const format_id f : arithmetic_formats) {
    cases.push_back(dense_case(operation::fma, {f, f, f}, f, 2, 9001));
    cases.back().in[1].col_stride = 0;
    cases.back().out.col_stride = 2;
    cases.back().out.row_stride *= 2;
  }
  expect_computes(*target_, std::move(cases));
}

TEST_P(ArrayArithmeticSuite, Threads) {
  std::vector<array_arithmetic_case> cases;
  constexpr std::array operations = {operation::add, operation::rem};
  constexpr matrix_shape shapes[] = {{1, 70001}, {70001, 1}, {7, 10007}};
  for (const auto& [f, op, s, threads] :
       combinations(arithmetic_formats, operations, shapes, std::array{0, 3, 8})) {
    cases.push_back(dense_case(op, {f, f, f}, f, s.rows, s.cols));
    cases.back().asked = cases.size() % 2 == 0 ? flags_asked::each : flags_asked::none;
    cases.back().threads = threads;
  }
  expect_computes(*target_, std::move(cases), 1, 32);
}

TEST_P(ArrayArithmeticSuite, TheFlagsOfOneElementAreReturned) {
  // Among numbers that raise nothing one that raises all it can, wherever a thread's part ends.
  struct numbers {
    format_id format;
    flags_asked asked;
    std::uint64_t one, max;
  };
  constexpr std::int64_t size = 70001;
  std::vector<problem> problems;
  for (const numbers& n : {numbers{format_id::fp16, flags_asked::each, 0x3C00, 0x7BFF},
                           {format_id::fp32, flags_asked::all, 0x3F800000, 0x7F7FFFFF}}) {
    array_arithmetic_case c = dense_case(operation::add, {n.format, n.format}, n.format, 1, size);
    c.asked = n.asked;
    c.threads = 3;
    const auto what = listed_operation("compute", computations(), std::vector{c}).draw(0, {});
    for (const std::int64_t at : {std::int64_t{0}, size / 2, size - 1}) {
      problems.push_back({what, {{0, 0, size, n.one}, {1, 0, size, n.one}}});
      for (const std::size_t operand : {std::size_t{0}, std::size_t{1}})
        problems.back().codes.push_back({operand, at, 1, n.max});
    }
  }
  expect_as_defined(problems);
}

TEST_P(ArrayArithmeticSuite, FlagsOfSpecialNumbersAlone) {
  // 0, subnormal and smallest normal numbers, 2^-63, 1, its neighbour, max, Inf, quiet and signalling
  // NaN
  constexpr std::uint32_t numbers[] = {0,          1,          0x007FFFFF, 0x00800000,
                                       0x00800001, 0x20000000, 0x3F800000, 0x3F800001,
                                       0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7F800001};
  std::vector<problem> problems;
  for (const operation op :
       {operation::add, operation::sub, operation::mul, operation::div, operation::sqrt}) {
    array_arithmetic_case c =
        dense_case(op, {format_id::fp32, format_id::fp32}, format_id::fp32, 1, 1);
    c.asked = flags_asked::all;
    const auto what = listed_operation("compute", computations(), std::vector{c}).draw(0, {});
    for (const std::uint32_t a : numbers) {
      for (const std::uint32_t b : numbers) {
        for (const std::uint32_t sign : {0u, 0x80000000u}) {
          problems.push_back({what, {{0, 0, 1, sign | a}, {1, 0, 1, b}}});
        }
      }
    }
  }
  expect_as_defined(problems);
}

TEST_P(ArrayArithmeticSuite, InPlace) {
  std::vector<array_arithmetic_case> cases;
  for (const auto& [op, f, col_stride, over] :
       combinations(kernel_operations, arithmetic_formats, std::array{1, 2}, std::array{0, 1, 2})) {
    if (over >= operand_count(op)) continue;
    cases.push_back(dense_case(op, {f, f, f}, f, 3, 5003));
    array_arithmetic_case& c = cases.back();
    c.over = over;
    for (array_layout* l : {&c.in[0], &c.in[1], &c.in[2], &c.out}) {
      l->col_stride = col_stride;
      l->row_stride = 5003 * col_stride;
    }
  }
  for (std::size_t i = 0, apart = cases.size(); i < apart; ++i) {
    if (cases[i].over != 0) continue;
    cases.push_back(cases[i]);  // all operands and the result in one
    cases.back().alike = true;
  }
  expect_computes(*target_, std::move(cases));
}

/// Rows that begin on borders of vectors and end between them; operands that repeat a row or a code.
TEST_P(ArrayArithmeticSuite, RowsOnBordersAndRepeatedOperands) {
  constexpr std::int64_t rows = 5, cols = 1043;
  const array_layout padded{rows, cols, 1056, 1, 0};
  const std::vector<array_layout> readable{padded,
                                           {rows, cols, 1072, 1, 0},
                                           {rows, cols, 0, 1, 0},   // one row for all
                                           {rows, cols, 16, 0, 0},  // one code a row
                                           {rows, cols, 0, 0, 0}};  // one code
  std::vector<array_arithmetic_case> cases;
  constexpr std::array operations = {operation::add,  operation::mul, operation::div,
                                     operation::sqrt, operation::fma, operation::min_num};
  for (const auto& [f, op, policy] : combinations(arithmetic_formats, operations,
                                                  std::array{overflow::ieee, overflow::saturate})) {
    for (std::size_t i = 0; i < readable.size() * readable.size(); ++i) {
      array_arithmetic_case c =
          dense_case(op, {f, f, f}, f, rows, cols, {rounding::nearest_even, policy});
      c.content = cases.size();
      const std::size_t a = i % readable.size(), b = i / readable.size();
      c.in = {readable[a], readable[b], readable[(a + 2 * b) % readable.size()]};
      c.out = padded;
      cases.push_back(c);
    }
  }
  expect_computes(*target_, std::move(cases), 7);
}

// Backends may treat arrays that do not fit caches in another way (backends/simd/lanes/access.hpp).
TEST_P(ArrayArithmeticSuite, ViewsLargerThanCaches) {
  using enum format_id;
  if (target_->backend() == "reference") GTEST_SKIP() << "what the others are compared with here";
  const std::int64_t bytes =
      by_effort((std::int64_t{1} << 25) / (effort_divisor > 1 ? 64 : 1), 1 << 19);
  std::vector<array_arithmetic_case> cases;
  for (const auto& [op, f] : {std::pair{operation::add, e4m3},
                              {operation::fma, bf16},
                              {operation::mul, fp16},
                              {operation::sqrt, fp32}}) {
    const std::int64_t elements = bytes / storage_bytes(f) / (operand_count(op) + 1);
    cases.push_back(dense_case(op, {f, f, f}, f, 1, elements + 77));
    cases.back().out.misalignment = 4;
    cases.push_back(dense_case(op, {f, f, f}, f, 3, elements / 3 + 5));
    cases.back().out.row_stride += 9;
    cases.back().in[0].misalignment = 3;
    cases.back().out.misalignment = 1;
  }
  expect_computes(*target_, std::move(cases), 1, 1, *host_target("reference"));
}

}  // namespace samebits::support
