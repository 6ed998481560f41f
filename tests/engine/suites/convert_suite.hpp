// The suite of array conversion: what every executor must do, bit for bit as the scalar function
// does it (contract §10.3). Include it in one file per program and instantiate:
//
//   INSTANTIATE_TEST_SUITE_P(Mine, ConvertSuite,
//                            ::testing::Values(convert_target{"mine", true, my_convert}),
//                            name_of_target);
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/sweeps.hpp"
#include "engine/definition.hpp"
#include "engine/suites/rapidcheck.hpp"
#include "engine/suites/suite_target.hpp"
#include "samebits/convert.hpp"
#include "samebits/error.hpp"
#include "support/rules.hpp"

namespace samebits::support {

/// An executor under test: a call on host views, or a target that each test makes anew.
struct convert_target {
  std::string name;
  bool supported;  ///< by this machine
  std::function<void(const const_matrix_view& in, const matrix_view& out,
                     const convert_options& options, int threads)>
      convert;
  /// Has some conversions only; what it refuses by name (samebits::unsupported) is passed over.
  bool partial = false;
  std::function<std::unique_ptr<array_target>()> make = {};  ///< in the place of `convert`
};

/// The same executors as other suites test.
inline std::vector<convert_target> convert_targets(const std::vector<suite_target>& all) {
  std::vector<convert_target> targets;
  for (const suite_target& t : all) targets.push_back({t.name, true, {}, false, t.make});
  return targets;
}

inline std::string name_of_target(const ::testing::TestParamInfo<convert_target>& info) {
  return info.param.name;
}

class ConvertSuite : public ::testing::TestWithParam<convert_target> {
 protected:
  void SetUp() override {
    if (!GetParam().supported) GTEST_SKIP() << "this machine lacks " << GetParam().name;
    if (GetParam().make) target_ = GetParam().make();
  }

  /// Makes the calls of cases and compares all memory with what the definition leaves.
  void expect_conforms(std::vector<array_case> cases, std::size_t step, std::size_t batch = 1024) {
    function_target<array_case> calls(
        GetParam().name, [](const array_case& c, const call_site& site) {
          try {
            GetParam().convert(site.views[0], site.views[1], options_of(c), c.threads);
          } catch (const unsupported&) {
            if (!GetParam().partial) throw;
            return convert_by_definition(c, site);
          }
          return returned_values{};
        });
    expect_same(listed_operation("convert", conversions(), thinned(std::move(cases), step), batch),
                target_ ? *target_ : calls,
                function_target<array_case>("the definition", convert_by_definition), 0);
  }

  static array_case dense(format_id from, format_id to, std::int64_t rows, std::int64_t cols,
                          const cast_rule& rule = {}) {
    array_case c;
    c.from = from;
    c.to = to;
    c.in = c.out = dense_layout(rows, cols);
    c.rule = rule;
    c.random = {0x9E3779B97F4A7C15u, 3, 1000, std::nullopt, 16};
    c.content = static_cast<std::uint64_t>(from) * 31 + static_cast<std::uint64_t>(to) * 7 +
                static_cast<std::uint64_t>(cols);
    return c;
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

  std::unique_ptr<array_target> target_;
};

TEST_P(ConvertSuite, EveryPairEveryRule) {
  std::vector<array_case> cases;
  const auto size = 4099 / static_cast<std::int64_t>(effort_divisor);
  for (const auto& [from, to, rule] : combinations(all_formats(), all_formats(), every_rule())) {
    cases.push_back(dense(from, to, 1, size, rule));
    cases.back().content += cases.size() * 1009;
  }
  expect_conforms(std::move(cases), 17);
}

TEST_P(ConvertSuite, EveryTwoOptions) {
  const std::vector<matrix_shape> sizes = sizes_around_borders();
  std::vector<array_case> cases;
  // Some executors have kernels for the usual rules alone, which half of the cases have.
  for (const bool usual : {false, true}) {
    even_draw draws;
    for (std::uint64_t i = 0; i < 6000; ++i) {
      draws.begin();
      const auto [from, to] = even_one_of(draws, "formats", kernel_pairs());
      const auto [rows, cols] = even_one_of(draws, "size", sizes);
      array_case c = dense(from, to, rows, cols);
      if (usual) {
        c.rule.overflow = draws.draw("overflow", 2) == 0 ? overflow::ieee : overflow::saturate;
      } else {
        c.rule = {even_one_of(draws, "rounding", kernel_modes),
                  even_enumerator<overflow>(draws, "overflow"),
                  even_enumerator<nan_policy>(draws, "NaN policy")};
        c.random = even_stream(draws);
      }
      c.in = even_layout(draws, "in", rows, cols, array_side::read);
      c.out = even_layout(draws, "out", rows, cols, array_side::written);
      c.in.misalignment = static_cast<std::int64_t>(draws.draw("misalignment of in", 8));
      c.out.misalignment = static_cast<std::int64_t>(draws.draw("misalignment of out", 8));
      constexpr int threads[] = {1, 0, 3, 8};
      c.threads = even_one_of(draws, "threads", threads);
      c.content = i;
      cases.push_back(c);
    }
    EXPECT_EQ(draws.missing(), "");
  }
  expect_conforms(std::move(cases), 17);
}

TEST_P(ConvertSuite, UnalignedDenseViews) {
  std::vector<array_case> cases;
  for (const auto& [pair, mode] : combinations(kernel_pairs(), kernel_modes)) {
    for (std::int64_t shift = 0; shift < 64; ++shift) {
      cases.push_back(dense(pair.first, pair.second, 1, 71, {mode}));
      cases.back().in.misalignment = shift % 8;
      cases.back().out.misalignment = shift / 8;
    }
  }
  expect_conforms(std::move(cases), 17);
}

TEST_P(ConvertSuite, InPlace) {
  std::vector<array_case> cases;
  for (const auto& [from, to, mode] : combinations(all_formats(), all_formats(), kernel_modes)) {
    if (storage_bytes(from) != storage_bytes(to)) continue;
    cases.push_back(dense(from, to, 3, 67, {mode}));
    cases.back().in_place = true;
  }
  expect_conforms(std::move(cases), 17);
}

TEST_P(ConvertSuite, ViewsWithoutMemory) {
  for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 7}, {7, 0}}) {
    const memory_space space = target_ ? target_->space() : memory_space::host;
    const matrix_view nowhere{nullptr, format_id::e4m3, rows, cols, cols, 1, space};
    const const_matrix_view nothing{nullptr, format_id::fp32, rows, cols, cols, 1, space};
    if (target_) {
      EXPECT_NO_THROW(convert(nothing, nowhere, {}, target_->where(1)));
    } else {
      EXPECT_NO_THROW(GetParam().convert(nothing, nowhere, {}, 1));
    }
  }
}

TEST_P(ConvertSuite, Threads) {
  even_draw draws;
  std::vector<array_case> cases;
  constexpr matrix_shape shapes[] = {{1, 140001}, {140001, 1}, {7, 20011}};
  for (const auto& [pair, mode, s] : combinations(kernel_pairs(), kernel_modes, shapes)) {
    draws.begin();
    cases.push_back(dense(pair.first, pair.second, s.rows, s.cols, {mode}));
    constexpr int threads[] = {0, 2, 3, 8, 64};
    cases.back().threads = even_one_of(draws, "threads", threads);
  }
  expect_conforms(std::move(cases), 7, 32);
}

// Backends may treat arrays that do not fit caches in another way (backends/simd/lanes/access.hpp).
TEST_P(ConvertSuite, ViewsLargerThanCaches) {
  using enum format_id;
  const std::int64_t elements =
      by_effort((std::int64_t{1} << 25) / 3 / (effort_divisor > 1 ? 64 : 1), 1 << 17);
  std::vector<array_case> cases;
  for (const auto& [from, to] : {std::pair{fp32, bf16}, {fp32, e4m3}, {bf16, e4m3}, {e4m3, fp32}}) {
    for (const rounding mode : {rounding::nearest_even, rounding::stochastic}) {
      cases.push_back(dense(from, to, 1, elements + 77, {mode}));
      cases.back().out.misalignment = 3;
      cases.push_back(dense(from, to, 3, elements / 3 + 5, {mode}));
      cases.back().out.row_stride += 9;
      cases.back().random.offset = 1003;
      cases.back().random.pitch = static_cast<std::uint64_t>(elements);
    }
  }
  expect_conforms(std::move(cases), 1, 2);
}

}  // namespace samebits::support
