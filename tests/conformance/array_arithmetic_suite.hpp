// The conformance suite of array arithmetic: what every executor must do, bit for bit as the scalar
// function does it (contract §10.3). Include it in one file per program and instantiate:
//
//   INSTANTIATE_TEST_SUITE_P(Host, ArrayArithmeticSuite,
//   ::testing::ValuesIn(host_array_arithmetic()),
//                            name_of_backend);
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "support/array_arithmetic_case.hpp"
#include "support/backends.hpp"
#include "support/effort.hpp"
#include "support/rules.hpp"

namespace samebits::support {

/// An executor under test. `compute` takes host views; a device target copies the memory that they
/// span to the device and back, gaps included.
struct array_arithmetic_target {
  std::string name;
  compute_function compute;
};

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

class ArrayArithmeticSuite : public ::testing::TestWithParam<array_arithmetic_target> {
 protected:
  void expect_conforms(const array_arithmetic_case& c) {
    if (cases.leaves_out()) return;
    ASSERT_TRUE(conforms(c, GetParam().compute, by_definition, GetParam().name));
  }

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

  thinned_cases cases{13};
};

TEST_P(ArrayArithmeticSuite, EveryOperationEveryRule) {
  constexpr std::int64_t size = 509 / static_cast<std::int64_t>(effort_divisor);
  for (const operation op : all_operations()) {
    for (const auto& [from, to] : mixes()) {
      for (int mode = 0; mode < enum_count<rounding>; ++mode) {
        for (const overflow policy : overflow_policies) {
          for (const nan_policy nan : nan_policies) {
            array_arithmetic_case c =
                dense_case(op, from, to, 1, size, {static_cast<rounding>(mode), policy, nan});
            expect_conforms(c);
            c.asked = flags_asked::each;
            expect_conforms(c);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST_P(ArrayArithmeticSuite, SizesAroundVectorAndPageBorders) {
  for (const format_id f : arithmetic_formats) {
    for (const operation op : kernel_operations) {
      for (const std::int64_t around : {1, 16, 32, 64, 128, 256, 1024, 4096, 16384}) {
        for (std::int64_t size = around - 1; size <= around + 1; ++size) {
          expect_conforms(dense_case(op, {f, f, f}, f, 1, size));
          if (around <= 256) expect_conforms(dense_case(op, {f, f, f}, f, size, 1));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(ArrayArithmeticSuite, EmptyViewsWriteNothing) {
  cases = thinned_cases(1);
  for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 7}, {7, 0}}) {
    using enum format_id;
    array_arithmetic_case c = dense_case(operation::fma, {bf16, bf16, bf16}, bf16, rows, cols);
    c.asked = flags_asked::each;
    expect_conforms(c);
    const const_matrix_view nothing{nullptr, bf16, rows, cols, cols};
    const matrix_view nowhere{nullptr, bf16, rows, cols, cols};
    EXPECT_NO_THROW(GetParam().compute(operation::add, {nothing, nothing}, nowhere, {},
                                       flags_asked::none, {}, 1));
  }
}

TEST_P(ArrayArithmeticSuite, UnalignedViews) {
  for (const format_id f : arithmetic_formats) {
    for (const operation op : kernel_operations) {
      for (std::int64_t shift = 0; shift < 512; ++shift) {
        array_arithmetic_case c = dense_case(op, {f, f, f}, f, 1, 139);
        c.in[0].misalignment = shift % 8;
        c.in[1].misalignment = shift / 8 % 8;
        c.in[2].misalignment = (shift * 3 + 1) % 8;
        c.out.misalignment = shift / 64;
        expect_conforms(c);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(ArrayArithmeticSuite, StridedViews) {
  constexpr std::int64_t rows = 13;
  constexpr std::int64_t cols = 37;
  const std::vector<array_layout> readable{{rows, cols, cols, 1, 0},
                                           {rows, cols, cols + 5, 1, 1},
                                           {rows, cols, 3 * cols, 3, 0},
                                           {rows, cols, 1, rows, 0},
                                           {rows, cols, 2, 2 * rows + 1, 3},
                                           {rows, cols, 0, 1, 0},
                                           {rows, cols, 1, 0, 0},
                                           {rows, cols, 0, 0, 0}};
  constexpr std::size_t writable = 5;
  for (const format_id f : arithmetic_formats) {
    for (const operation op : kernel_operations) {
      for (std::size_t i = 0; i < readable.size() * readable.size() * writable; ++i) {
        array_arithmetic_case c = dense_case(op, {f, f, f}, f, rows, cols);
        const std::size_t a = i / writable % readable.size();
        const std::size_t b = i / writable / readable.size();
        c.in = {readable[a], readable[b], readable[(a * 3 + b + i) % readable.size()]};
        c.out = readable[i % writable];
        c.each = readable[(i + 1) % writable];
        c.asked = i % 3 == 0 ? flags_asked::each : flags_asked::none;
        expect_conforms(c);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(ArrayArithmeticSuite, RowsLongerThanAChunkOfCopies) {
  cases = thinned_cases(1);
  for (const format_id f : arithmetic_formats) {
    array_arithmetic_case c = dense_case(operation::fma, {f, f, f}, f, 2, 9001);
    c.in[1].col_stride = 0;
    c.out.col_stride = 2;
    c.out.row_stride *= 2;
    expect_conforms(c);
    if (HasFatalFailure()) return;
  }
}

TEST_P(ArrayArithmeticSuite, Threads) {
  for (const format_id f : arithmetic_formats) {
    for (const operation op : {operation::add, operation::rem}) {
      for (const auto& [rows, cols] :
           {std::pair<std::int64_t, std::int64_t>{1, 70001}, {70001, 1}, {7, 10007}}) {
        array_arithmetic_case c = dense_case(op, {f, f, f}, f, rows, cols);
        c.asked = flags_asked::each;
        compute_memory one(c);
        compute_memory many = one;
        const auto run = [&](compute_memory& m, flags_asked asked, int threads) {
          return GetParam().compute(op, operands_of(m), m.out.view(), options_of(c), asked,
                                    flags_of(m), threads);
        };
        const flags raised = run(one, flags_asked::each, 1);
        for (const int threads : {0, 3, 8}) {
          for (const flags_asked asked : {flags_asked::each, flags_asked::none}) {
            const compute_memory before = many;
            const flags got = run(many, asked, threads);
            if (asked == flags_asked::each) {
              ASSERT_EQ(got, raised) << threads << " threads: " << c;
              ASSERT_EQ(many.each.bytes(), one.each.bytes()) << threads << " threads: " << c;
            }
            ASSERT_EQ(many.out.bytes(), one.out.bytes()) << threads << " threads: " << c;
            many = before;
          }
        }
      }
    }
  }
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

TEST_P(ArrayArithmeticSuite, RandomBitsFollowOffsetPitchAndWidth) {
  constexpr std::uint64_t top = ~std::uint64_t{0};
  for (const auto& [from, to] : mixes()) {
    for (const int bits : {1, 7, 8, 9, 15, 16, 17, 24, 31, 32}) {
      for (const random_stream& stream :
           {random_stream{0, 0, 0, std::nullopt, bits}, random_stream{1, top, 5, 1000, bits},
            random_stream{top, 1, top - 40, std::nullopt, bits},
            random_stream{7, 8, (std::uint64_t{1} << 32) - 30, top - 2, bits}}) {
        array_arithmetic_case c =
            dense_case(operation::add, from, to, 5, 33, {rounding::stochastic});
        c.random = stream;
        expect_conforms(c);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(ArrayArithmeticSuite, InPlace) {
  for (const operation op : kernel_operations) {
    for (const format_id f : arithmetic_formats) {
      for (const std::int64_t col_stride : {1, 2}) {
        array_arithmetic_case c = dense_case(op, {f, f, f}, f, 3, 5003);
        for (array_layout* l : {&c.in[0], &c.in[1], &c.in[2], &c.out}) {
          l->col_stride = col_stride;
          l->row_stride = 5003 * col_stride;
        }
        const auto run = [&](array_operands in, const matrix_view& out) {
          GetParam().compute(op, in, out, {}, flags_asked::none, {}, 1);
        };
        for (std::size_t i = 0; i < static_cast<std::size_t>(operand_count(op)); ++i) {
          compute_memory apart(c);
          run(operands_of(apart), apart.out.view());
          compute_memory m(c);
          run(operands_of(m), m.in[i].view());
          for (std::int64_t at = 0; at < 3 * 5003; ++at) {
            ASSERT_EQ(m.in[i].load(at * col_stride), apart.out.load(at * col_stride)) << c;
          }
        }
        // All operands and the result in one.
        compute_memory apart(c);
        const const_matrix_view a = apart.in[0].view();
        run({a, a, a}, apart.out.view());
        compute_memory m(c);
        const matrix_view same = m.in[0].view();
        run({same, same, same}, same);
        for (std::int64_t at = 0; at < 3 * 5003; ++at) {
          ASSERT_EQ(m.in[0].load(at * col_stride), apart.out.load(at * col_stride)) << c;
        }
      }
    }
  }
}

// Backends may treat arrays that do not fit caches in another way (backends/simd/lanes/access.hpp).
TEST_P(ArrayArithmeticSuite, ViewsLargerThanCaches) {
  using enum format_id;
  const std::int64_t bytes =
      by_effort((std::int64_t{1} << 25) / (effort_divisor > 1 ? 64 : 1), 1 << 19);
  if (GetParam().name == "reference") GTEST_SKIP() << "what the others are compared with here";
  const compute_function reference = computing_on("reference");
  const auto expect_equal = [&](const array_arithmetic_case& c) {
    compute_memory m(c);
    compute_memory expected = m;
    const auto run = [&](const compute_function& compute, compute_memory& memory) {
      compute(c.op, operands_of(memory), memory.out.view(), options_of(c), flags_asked::none, {},
              1);
    };
    run(GetParam().compute, m);
    run(reference, expected);
    ASSERT_TRUE(m.out.bytes() == expected.out.bytes()) << c;
  };
  for (const auto& [op, f] : {std::pair{operation::add, e4m3},
                              {operation::fma, bf16},
                              {operation::mul, fp16},
                              {operation::sqrt, fp32}}) {
    const std::int64_t elements = bytes / storage_bytes(f) / (operand_count(op) + 1);
    array_arithmetic_case flat = dense_case(op, {f, f, f}, f, 1, elements + 77);
    flat.out.misalignment = 4;
    expect_equal(flat);
    if (HasFatalFailure()) return;
    array_arithmetic_case rows = dense_case(op, {f, f, f}, f, 3, elements / 3 + 5);
    rows.out.row_stride += 9;
    rows.in[0].misalignment = 3;
    rows.out.misalignment = 1;
    expect_equal(rows);
    if (HasFatalFailure()) return;
  }
}

}  // namespace samebits::support
