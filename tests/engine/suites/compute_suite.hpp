// The suite of array arithmetic: what every executor must do, bit for bit as the scalar function
// does it (contract §10.3). Include it in one file per program and instantiate:
//
//   INSTANTIATE_TEST_SUITE_P(Host, ArrayArithmeticSuite,
//                            ::testing::ValuesIn(host_array_arithmetic()), name_of_backend);
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/sweeps.hpp"
#include "engine/definition.hpp"
#include "engine/suites/rapidcheck.hpp"
#include "support/arithmetic_case.hpp"
#include "support/rules.hpp"

namespace samebits::support {

/// Calls the library and returns what compute_with_flags() returned.
using compute_function = std::function<flags(
    operation op, const array_operands& in, const matrix_view& out, const compute_options& options,
    flags_asked asked, const flags_view& each, int threads)>;

/// An executor under test. `compute` takes host views; a device target copies the memory that they
/// span to the device and back, gaps included.
struct array_arithmetic_target {
  std::string name;
  compute_function compute;
};

/// compute() or compute_with_flags() of a backend.
inline compute_function computing_on(const std::string& backend) {
  return [backend](operation op, const array_operands& in, const matrix_view& out,
                   const compute_options& options, flags_asked asked, const flags_view& each,
                   int threads) {
    const executor where{backend, threads};
    if (asked == flags_asked::each) return compute_with_flags(op, in, out, options, each, where);
    compute(op, in, out, options, where);
    return flags::none;
  };
}

/// Every backend for host memory that this machine can run.
inline std::vector<array_arithmetic_target> host_array_arithmetic() {
  std::vector<array_arithmetic_target> targets;
  for (const std::string& name : supported_backends())
    targets.push_back({name, computing_on(name)});
  return targets;
}

inline void PrintTo(const array_arithmetic_target& target, std::ostream* out) {
  *out << target.name;
}
inline std::string name_of_backend(const ::testing::TestParamInfo<array_arithmetic_target>& info) {
  return info.param.name;
}

/// Dense arrays of one shape everywhere.
inline array_arithmetic_case dense_case(operation op, const operand_formats& from, format_id to,
                                        std::int64_t rows, std::int64_t cols,
                                        const cast_rule& rule = {}) {
  array_arithmetic_case c;
  c.op = op;
  c.from = from;
  c.to = to;
  c.in.fill(dense_layout(rows, cols));
  c.out = c.each = c.in[0];
  c.rule = rule;
  c.random = {0x9E3779B97F4A7C15u, 3, 1000, std::nullopt, 16};
  c.content = static_cast<std::uint64_t>(op) * 31 + static_cast<std::uint64_t>(to);
  return c;
}

/// Makes the calls of cases by a target and compares all memory and flags with what the judge
/// leaves.
inline void expect_computes(const array_arithmetic_target& tested,
                            std::vector<array_arithmetic_case> cases, std::size_t step = 1,
                            std::size_t batch = 1024,
                            const array_target& judge = function_target<array_arithmetic_case>(
                                "the definition", compute_by_definition)) {
  function_target<array_arithmetic_case> target(
      tested.name, [&tested](const array_arithmetic_case& c, const call_site& site) {
        const std::vector<matrix_view>& v = site.views;
        const matrix_view& each = v[at_each_flags];
        const flags raised = tested.compute(
            c.op, {v[0], v[1], v[2]}, arithmetic_result_of(c, site), options_of(c), c.asked,
            {static_cast<flags*>(each.data), each.row_stride, each.col_stride}, c.threads);
        if (c.asked == flags_asked::each) {
          put_code(v[at_all_flags], 0, 0, static_cast<std::uint64_t>(raised));
        }
        return returned_values{};
      });
  expect_same(listed_operation("compute", computations(), thinned(std::move(cases), step), batch),
              target, judge, 0);
}

class ArrayArithmeticSuite : public ::testing::TestWithParam<array_arithmetic_target> {
 protected:
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
};

TEST_P(ArrayArithmeticSuite, EveryOperationEveryRule) {
  constexpr std::int64_t size = 509 / static_cast<std::int64_t>(effort_divisor);
  std::vector<array_arithmetic_case> cases;
  for (const operation op : all_operations()) {
    for (const auto& [from, to] : mixes()) {
      for (int mode = 0; mode < enum_count<rounding>; ++mode) {
        for (const overflow policy : overflow_policies) {
          for (const nan_policy nan : nan_policies) {
            for (const flags_asked asked : {flags_asked::none, flags_asked::each}) {
              cases.push_back(
                  dense_case(op, from, to, 1, size, {static_cast<rounding>(mode), policy, nan}));
              cases.back().asked = asked;
              cases.back().content += cases.size() * 1009;
            }
          }
        }
      }
    }
  }
  expect_computes(GetParam(), std::move(cases), 13);
}

TEST_P(ArrayArithmeticSuite, EveryTwoOptions) {
  const std::vector<matrix_shape> sizes = sizes_around_borders();
  std::vector<array_arithmetic_case> cases;
  // Some executors have kernels for one format, the usual rules and no flags alone, which half of the
  // cases have.
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
  expect_computes(GetParam(), std::move(cases), 13);
}

TEST_P(ArrayArithmeticSuite, UnalignedDenseViews) {
  std::vector<array_arithmetic_case> cases;
  for (const format_id f : arithmetic_formats) {
    for (const operation op : kernel_operations) {
      for (std::int64_t shift = 0; shift < 512; ++shift) {
        cases.push_back(dense_case(op, {f, f, f}, f, 1, 139));
        array_arithmetic_case& c = cases.back();
        c.in[0].misalignment = shift % 8;
        c.in[1].misalignment = shift / 8 % 8;
        c.in[2].misalignment = (shift * 3 + 1) % 8;
        c.out.misalignment = shift / 64;
      }
    }
  }
  expect_computes(GetParam(), std::move(cases), 13);
}

TEST_P(ArrayArithmeticSuite, ViewsWithoutMemory) {
  for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 7}, {7, 0}}) {
    const const_matrix_view nothing{nullptr, format_id::bf16, rows, cols, cols};
    const matrix_view nowhere{nullptr, format_id::bf16, rows, cols, cols};
    EXPECT_NO_THROW(GetParam().compute(operation::add, {nothing, nothing}, nowhere, {},
                                       flags_asked::none, {}, 1));
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
  expect_computes(GetParam(), std::move(cases));
}

TEST_P(ArrayArithmeticSuite, Threads) {
  std::vector<array_arithmetic_case> cases;
  for (const format_id f : arithmetic_formats) {
    for (const operation op : {operation::add, operation::rem}) {
      for (const auto& [rows, cols] :
           {std::pair<std::int64_t, std::int64_t>{1, 70001}, {70001, 1}, {7, 10007}}) {
        for (const int threads : {0, 3, 8}) {
          cases.push_back(dense_case(op, {f, f, f}, f, rows, cols));
          cases.back().asked = cases.size() % 2 == 0 ? flags_asked::each : flags_asked::none;
          cases.back().threads = threads;
        }
      }
    }
  }
  expect_computes(GetParam(), std::move(cases), 1, 32);
}

TEST_P(ArrayArithmeticSuite, TheFlagsOfOneElementAreReturned) {
  // Among numbers that raise nothing one that raises all it can, wherever a thread's part ends.
  constexpr std::int64_t size = 70001;
  std::vector<fp16> ones(static_cast<std::size_t>(size), fp16(1.0f));
  std::vector<fp16> out(ones.size());
  for (const std::int64_t at : {std::int64_t{0}, size / 2, size - 1}) {
    std::vector<fp16> x = ones;
    x[static_cast<std::size_t>(at)] = fp16::from_bits(0x7BFF);
    const flags raised = GetParam().compute(operation::add, {view_of(x), view_of(x)}, view_of(out),
                                            {}, flags_asked::each, {}, 3);
    EXPECT_EQ(raised, flags::overflow | flags::inexact) << at;
  }
}

TEST_P(ArrayArithmeticSuite, InPlace) {
  std::vector<array_arithmetic_case> cases;
  for (const operation op : kernel_operations) {
    for (const format_id f : arithmetic_formats) {
      for (const std::int64_t col_stride : {1, 2}) {
        for (int over = 0; over < operand_count(op); ++over) {
          cases.push_back(dense_case(op, {f, f, f}, f, 3, 5003));
          array_arithmetic_case& c = cases.back();
          c.over = over;
          for (array_layout* l : {&c.in[0], &c.in[1], &c.in[2], &c.out}) {
            l->col_stride = col_stride;
            l->row_stride = 5003 * col_stride;
          }
        }
      }
    }
  }
  expect_computes(GetParam(), std::move(cases));
  for (const operation op : kernel_operations) {  // all operands and the result in one
    for (const format_id f : arithmetic_formats) {
      strided_buffer x(f, dense_layout(3, 5003));
      for (std::int64_t i = 0; i < 3 * 5003; ++i)
        x.store(i, static_cast<std::uint64_t>(i) * 40503u >> 3);
      strided_buffer apart(f, dense_layout(3, 5003)), same = x;
      const auto run = [&](const matrix_view& in, const matrix_view& out) {
        GetParam().compute(op, {in, in, in}, out, {}, flags_asked::none, {}, 1);
      };
      run(x.view(), apart.view());
      run(same.view(), same.view());
      ASSERT_EQ(same.bytes(), apart.bytes()) << name(op) << " of " << name(f);
    }
  }
}

// Backends may treat arrays that do not fit caches in another way (backends/simd/lanes/access.hpp).
TEST_P(ArrayArithmeticSuite, ViewsLargerThanCaches) {
  using enum format_id;
  if (GetParam().name == "reference") GTEST_SKIP() << "what the others are compared with here";
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
  expect_computes(GetParam(), std::move(cases), 1, 1, *host_target("reference"));
}

}  // namespace samebits::support
