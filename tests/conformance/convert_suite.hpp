// The conformance suite of array conversion: what every executor must do, bit for bit as the
// scalar function does it (contract §10.3). Include it in one file per program and instantiate:
//
//   INSTANTIATE_TEST_SUITE_P(Host, ConvertSuite, ::testing::ValuesIn(host_targets()),
//                            name_of_target);
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "samebits/convert.hpp"
#include "samebits/error.hpp"
#include "samebits/scalar.hpp"
#include "support/array_generators.hpp"
#include "support/conversion_case.hpp"
#include "support/effort.hpp"
#include "support/rules.hpp"
#include "support/strided_buffer.hpp"

namespace samebits::support {

/// An executor under test. `convert` takes host views; a device target copies the memory that they
/// span to the device and back, gaps included, so that the suite sees what was written.
struct convert_target {
  std::string name;
  bool supported;  ///< by this machine
  std::function<void(const const_matrix_view& in, const matrix_view& out,
                     const convert_options& options, int threads)>
      convert;
  /// Has some conversions only; what it refuses by name (samebits::unsupported) is passed over.
  bool partial = false;
};

/// Every compiled backend that takes host memory.
inline std::vector<convert_target> host_targets() {
  std::vector<convert_target> targets;
  for (const backend_info& backend : compiled_backends()) {
    if (backend.space != memory_space::host) continue;
    const std::string name(backend.name);
    targets.push_back({name, backend.supported,
                       [name](const const_matrix_view& in, const matrix_view& out,
                              const convert_options& options, int threads) {
                         samebits::convert(in, out, options, {name, threads});
                       },
                       false});
  }
  return targets;
}

inline std::string name_of_target(const ::testing::TestParamInfo<convert_target>& info) {
  return info.param.name;
}

class ConvertSuite : public ::testing::TestWithParam<convert_target> {
 protected:
  /// Converts on the target; false where a partial one lacks the conversion.
  static bool target_converts(const const_matrix_view& in, const matrix_view& out,
                              const convert_options& options, int threads) {
    try {
      GetParam().convert(in, out, options, threads);
      return true;
    } catch (const unsupported&) {
      if (!GetParam().partial) throw;
      return false;
    }
  }

  void SetUp() override {
    if (!GetParam().supported) GTEST_SKIP() << "this machine lacks " << GetParam().name;
  }

  /// Input memory of a case: a few thousand codes chosen for the pair of formats, repeated.
  static strided_buffer filled(const array_case& c) {
    strided_buffer in(c.from, c.in);
    const std::vector<std::uint64_t>& codes = content_for(c.from, c.to);
    for (std::int64_t i = 0; i < c.in.span(); ++i) {
      in.store(i, codes[static_cast<std::size_t>(i) % codes.size()]);
    }
    return in;
  }

  static convert_options options_of(const array_case& c) {
    return {c.rule.rounding, c.rule.overflow, c.rule.nan, c.random};
  }

  /// Converts and compares every element with convert_code.
  void expect_conforms(const array_case& c) {
    if (cases.leaves_out()) return;
    strided_buffer in = filled(c);
    strided_buffer out(c.to, c.out);
    if (!target_converts(in.view(), out.view(), options_of(c), c.threads)) return;
    ASSERT_TRUE(out.guards_are_intact()) << "wrote outside the view: " << c;
    const std::uint64_t pitch = c.random.pitch.value_or(static_cast<std::uint64_t>(c.in.cols));
    for (std::int64_t row = 0; row < c.in.rows; ++row) {
      for (std::int64_t col = 0; col < c.in.cols; ++col) {
        conversion_case e{c.from, c.to, in.at(row, col), c.rule};
        if (c.rule.rounding == rounding::stochastic) {
          const std::uint64_t index = c.random.offset + static_cast<std::uint64_t>(row) * pitch +
                                      static_cast<std::uint64_t>(col);
          e.origin = {{c.random.seed, c.random.stream, index}};
          e.random = {random_word(c.random.seed, c.random.stream, index, c.random.bits),
                      c.random.bits};
        }
        const std::uint64_t got = out.at(row, col);
        const std::uint64_t expected = convert_code(e.from, e.to, e.input, e.rule, e.random).code;
        if (got == expected) continue;
        e.where = GetParam().name;
        FAIL() << same_code(e, got, expected).message() << "\n  element [" << row << ", " << col
               << "] of " << c;
      }
    }
  }

  static array_case dense(format_id from, format_id to, std::int64_t rows, std::int64_t cols,
                          const cast_rule& rule = {}) {
    array_case c;
    c.from = from;
    c.to = to;
    c.in = c.out = {rows, cols, cols, 1, 0};
    c.rule = rule;
    c.random = {0x9E3779B97F4A7C15u, 3, 1000, std::nullopt, 16};
    return c;
  }

  /// Chosen codes for a pair of formats, made once.
  static const std::vector<std::uint64_t>& content_for(format_id from, format_id to) {
    static std::array<std::array<std::vector<std::uint64_t>, format_count>, format_count> made;
    std::vector<std::uint64_t>& codes =
        made[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
    if (codes.empty()) {
      array_case c = dense(from, to, 1, 4099);  // a prime: no stride falls in step with it
      c.content = 17;
      codes = content_of(c);
    }
    return codes;
  }

  /// Pairs that backends support with kernels of their own, and some that they do not.
  static std::vector<std::pair<format_id, format_id>> kernel_pairs() {
    using enum format_id;
    return {{fp32, fp16}, {fp32, bf16}, {fp32, e4m3}, {fp32, e5m2}, {bf16, e4m3},
            {bf16, e5m2}, {fp16, e4m3}, {fp16, e5m2}, {fp16, bf16}, {bf16, fp16},
            {e4m3, fp32}, {e5m2, fp32}, {fp16, fp32}, {bf16, fp32}, {fp64, e4m3},
            {fp64, fp32}, {e4m3, fp16}, {fp32, e2m1}, {tf32, e8m0}, {e5m2, fp64}};
  }
  static constexpr std::array kernel_modes{rounding::nearest_even, rounding::upward,
                                           rounding::stochastic};

  thinned_cases cases{17};
};

TEST_P(ConvertSuite, EveryPairEveryRule) {
  for (const format_id from : all_formats()) {
    for (const format_id to : all_formats()) {
      for (int mode = 0; mode < enum_count<rounding>; ++mode) {
        for (const overflow policy : overflow_policies) {
          for (const nan_policy nan : nan_policies) {
            const cast_rule rule{static_cast<rounding>(mode), policy, nan};
            expect_conforms(
                dense(from, to, 1, 4099 / static_cast<std::int64_t>(effort_divisor), rule));
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST_P(ConvertSuite, SizesAroundVectorAndPageBorders) {
  for (const auto& [from, to] : kernel_pairs()) {
    for (const rounding mode : kernel_modes) {
      for (const std::int64_t around : {1, 16, 32, 64, 128, 256, 1024, 4096}) {
        for (std::int64_t size = around - 1; size <= around + 1; ++size) {
          expect_conforms(dense(from, to, 1, size, {mode}));
          expect_conforms(dense(from, to, size, 1, {mode}));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(ConvertSuite, EmptyViewsWriteNothing) {
  cases = thinned_cases(1);
  for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 7}, {7, 0}}) {
    expect_conforms(dense(format_id::fp32, format_id::e4m3, rows, cols));
    matrix_view nowhere{nullptr, format_id::e4m3, rows, cols, cols, 1, memory_space::host};
    const_matrix_view nothing{nullptr, format_id::fp32, rows, cols, cols, 1, memory_space::host};
    EXPECT_NO_THROW(GetParam().convert(nothing, nowhere, {}, 1));
  }
}

TEST_P(ConvertSuite, UnalignedViews) {
  for (const auto& [from, to] : kernel_pairs()) {
    for (const rounding mode : kernel_modes) {
      for (std::int64_t in_shift = 0; in_shift < 8; ++in_shift) {
        for (std::int64_t out_shift = 0; out_shift < 8; ++out_shift) {
          array_case c = dense(from, to, 1, 71, {mode});
          c.in.misalignment = in_shift;
          c.out.misalignment = out_shift;
          expect_conforms(c);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(ConvertSuite, StridedViews) {
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
  const std::vector<array_layout> writable(readable.begin(), readable.begin() + 5);
  for (const auto& [from, to] : kernel_pairs()) {
    for (const rounding mode : kernel_modes) {
      for (const array_layout& in : readable) {
        for (const array_layout& out : writable) {
          array_case c = dense(from, to, rows, cols, {mode});
          c.in = in;
          c.out = out;
          expect_conforms(c);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(ConvertSuite, Threads) {
  thinned_cases threaded(7);
  for (const auto& [from, to] : kernel_pairs()) {
    for (const rounding mode : kernel_modes) {
      for (const auto& [rows, cols] :
           {std::pair<std::int64_t, std::int64_t>{1, 140001}, {140001, 1}, {7, 20011}}) {
        if (threaded.leaves_out()) continue;
        const array_case c = dense(from, to, rows, cols, {mode});
        if (cols == 20011) expect_conforms(c);
        if (HasFatalFailure()) return;
        strided_buffer in = filled(c);
        strided_buffer one(to, c.out);
        if (!target_converts(in.view(), one.view(), options_of(c), 1)) continue;
        for (const int threads : {0, 2, 3, 8}) {
          strided_buffer many(to, c.out);
          GetParam().convert(in.view(), many.view(), options_of(c), threads);
          ASSERT_EQ(many.bytes(), one.bytes()) << threads << " threads: " << c;
        }
      }
    }
  }
}

TEST_P(ConvertSuite, RandomBitsFollowOffsetPitchAndWidth) {
  constexpr std::uint64_t top = ~std::uint64_t{0};
  for (const auto& [from, to] : kernel_pairs()) {
    for (const int bits : {1, 7, 8, 9, 13, 15, 16, 17, 24, 31, 32}) {
      const std::uint64_t per_block = bits <= 8 ? 16 : bits <= 16 ? 8 : 4;
      // Shortly before the number of a block no longer fits 32 bits.
      const std::uint64_t carry = (per_block << 32) - 70;
      for (const random_stream& stream :
           {random_stream{0, 0, 0, std::nullopt, bits}, random_stream{1, top, 5, 1000, bits},
            random_stream{top, 1, top - 40, std::nullopt, bits},
            random_stream{std::uint64_t{1} << 32, std::uint64_t{1} << 32, 3, 0, bits},
            random_stream{7, 8, (std::uint64_t{1} << 32) - 30, top - 2, bits},
            random_stream{9, 10, carry, std::nullopt, bits}}) {
        array_case c = dense(from, to, 5, 33, {rounding::stochastic});
        c.random = stream;
        expect_conforms(c);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(ConvertSuite, InPlace) {
  for (const format_id from : all_formats()) {
    for (const format_id to : all_formats()) {
      if (storage_bytes(from) != storage_bytes(to)) continue;
      for (const rounding mode : kernel_modes) {
        const array_case c = dense(from, to, 3, 67, {mode});
        strided_buffer memory = filled(c);
        strided_buffer apart(to, c.out);
        if (!target_converts(memory.view(), apart.view(), options_of(c), 1)) continue;
        matrix_view target = memory.view();
        target.format = to;
        GetParam().convert(memory.view(), target, options_of(c), 1);
        ASSERT_EQ(memory.bytes(), apart.bytes()) << name(from) << " to " << name(to);
      }
    }
  }
}

// Backends may treat arrays that do not fit caches in another way (backends/simd/lanes/access.hpp).
TEST_P(ConvertSuite, ViewsLargerThanCaches) {
  using enum format_id;
  cases = thinned_cases(1);
  const std::int64_t elements =
      by_effort((std::int64_t{1} << 25) / 3 / (effort_divisor > 1 ? 64 : 1), 1 << 17);
  for (const auto& [from, to] : {std::pair{fp32, bf16}, {fp32, e4m3}, {bf16, e4m3}, {e4m3, fp32}}) {
    for (const rounding mode : {rounding::nearest_even, rounding::stochastic}) {
      array_case flat = dense(from, to, 1, elements + 77, {mode});
      flat.out.misalignment = 3;
      expect_conforms(flat);
      if (HasFatalFailure()) return;
      array_case rows = dense(from, to, 3, elements / 3 + 5, {mode});
      rows.out.row_stride += 9;
      rows.random.offset = 1003;
      rows.random.pitch = static_cast<std::uint64_t>(elements);
      expect_conforms(rows);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace samebits::support
