// Every 509th amax, or every N-th with SAMEBITS_AMAX_STRIDE=N, through all scale rules, on the CPU and
// on the GPU.
//
// The reference is the definition in integers, on the CPU. Compared with it, by the scale of a tile
// and the code of its largest element: the widest host backend on tiles of one element,
// cuda-emulated on 1 x 16, cuda-native on 1 x 128; and in a kernel of its own the scale and factor
// by the GPU's division with those in integers. Amaxes are the codes 0 .. 7FFFFFFF, Inf and NaN
// among them, under nonfinite::propagate, so that each reaches the formulas.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "backends/cuda/instructions/hardware.cuh"
#include "numerics/bits/encode.hpp"
#include "numerics/quantize/scale.hpp"
#include "samebits/samebits.hpp"
#include "tests/device/both_sides.cuh"
#include "tests/support/backends.hpp"
#include "tests/support/effort.hpp"

namespace samebits {
namespace {

using support::check_cuda;
using support::device_bytes;
using support::difference;
using support::for_elements;

constexpr std::uint64_t amax_end = std::uint64_t{1} << 31;
constexpr std::int64_t slice = 1 << 20;  // amaxes at a time
constexpr std::int64_t cols = 128, emulated_cols = 16;

/// The amaxes first, first + stride, ...
struct amax_range {
  std::uint32_t first, stride;
  std::int64_t count;
  __host__ __device__ std::uint32_t at(std::int64_t i) const {
    return first + static_cast<std::uint32_t>(i) * stride;
  }
};

/// Where row i holds its amax; the rest of the row is +0.
__host__ __device__ constexpr std::int64_t column_of(std::int64_t i) { return i % emulated_cols; }

__global__ void fill(amax_range amaxes, std::uint32_t* matrix) {
  for_elements(amaxes.count * cols, [&](std::int64_t at) {
    const std::int64_t row = at / cols;
    matrix[at] = at % cols == column_of(row) ? amaxes.at(row) : 0;
  });
}

__global__ void compare_results(amax_range amaxes, const std::uint32_t* scales,
                                const std::uint8_t* codes, const std::uint32_t* expected_scales,
                                const std::uint8_t* expected_codes, difference* seen) {
  for_elements(amaxes.count, [&](std::int64_t i) {
    const bool same =
        scales[i] == expected_scales[i] && codes[i * cols + column_of(i)] == expected_codes[i];
    if (!same) support::note(seen, amaxes.at(i));
  });
}

SAMEBITS_HD numerics::tile_amax contribution(std::uint32_t amax) {
  return numerics::amax_contribution(nonfinite::propagate, amax);
}

__global__ void compare_arithmetics(amax_range amaxes, format_spec to,
                                    numerics::scale_settings settings, difference* seen) {
  for_elements(amaxes.count, [&](std::int64_t i) {
    const auto amax = contribution(amaxes.at(i));
    const numerics::tile_scale a = numerics::scale_of<cuda::hardware>(to, settings, amax);
    const numerics::tile_scale b = numerics::scale_of(to, settings, amax);
    const bool same = a.dequantization_scale == b.dequantization_scale && a.factor == b.factor;
    if (!same) support::note(seen, amaxes.at(i));
  });
}

class Scales : public ::testing::TestWithParam<format_id> {
 protected:
  static format_spec to() { return spec_of(GetParam()); }
  static quantize_options options_of(std::int64_t tile_cols, scale_rule rule) {
    return {.tile = {1, tile_cols}, .scale = rule, .nonfinite = nonfinite::propagate};
  }

  /// What the amaxes become by the definition.
  void expect(const amax_range& amaxes, scale_rule rule) {
    const auto count = static_cast<std::size_t>(amaxes.count);
    scales_.resize(count);
    codes_.resize(count);
    support::on_all_cores(count, [&](std::uint64_t i) {
      const std::uint32_t a = amaxes.at(static_cast<std::int64_t>(i));
      const auto scale = numerics::scale_of(to(), {rule, nonfinite::propagate}, contribution(a));
      const cast_rule cast = {rounding::nearest_even, overflow::saturate, nan_policy::canonical};
      const std::uint32_t scaled = numerics::scaled(rule, scale, a);
      scales_[i] = scale.dequantization_scale;
      codes_[i] =
          static_cast<std::uint8_t>(numerics::encode<std::uint32_t>(to(), cast, scaled, 0).code);
    });
    expected_scales_ = device_bytes(scales_.data(), count * 4);
    expected_codes_ = device_bytes(codes_.data(), count);
  }

  [[nodiscard]] difference on_host(const amax_range& amaxes, scale_rule rule) const {
    std::vector<std::uint32_t> in(scales_.size()), scales(in.size());
    std::vector<std::uint8_t> codes(in.size());
    for (std::int64_t i = 0; i < amaxes.count; ++i) in[static_cast<std::size_t>(i)] = amaxes.at(i);
    const void* const data = in.data();
    quantize(view_of_codes(format_id::fp32, data, amaxes.count, 1),
             {.codes = view_of_codes(GetParam(), codes.data(), amaxes.count, 1),
              .scales = view_of_codes(format_id::fp32, scales.data(), amaxes.count, 1)},
             options_of(16, rule), {support::supported_backends().back(), 0, nullptr});
    difference seen = {0, ~0ull};
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (scales[i] == scales_[i] && codes[i] == codes_[i]) continue;
      ++seen.count;
      seen.first = std::min<unsigned long long>(seen.first, in[i]);
    }
    return seen;
  }

  difference on_gpu(const char* backend, std::int64_t width, const amax_range& amaxes,
                    scale_rule rule) {
    const void* const data = matrix_.data();
    void* const out = got_codes_.data();
    const_matrix_view in = on_device(view_of_codes(format_id::fp32, data, amaxes.count, width));
    matrix_view codes = on_device(view_of_codes(GetParam(), out, amaxes.count, width));
    in.row_stride = codes.row_stride = cols;
    got_codes_.fill(0x55);
    got_scales_.fill(0x55);
    quantize(in,
             {.codes = codes,
              .scales = on_device(
                  view_of_codes(format_id::fp32, got_scales_.as<void>(), amaxes.count, 1))},
             options_of(width, rule), on_stream(nullptr, backend));
    return support::seen_by([&](difference* seen) {
      compare_results<<<2048, 256>>>(
          amaxes, got_scales_.as<std::uint32_t>(), got_codes_.as<std::uint8_t>(),
          expected_scales_.as<std::uint32_t>(), expected_codes_.as<std::uint8_t>(), seen);
    });
  }

  device_bytes matrix_{slice * cols * 4}, got_scales_{slice * 4}, got_codes_{slice * cols};

 private:
  std::vector<std::uint32_t> scales_;
  std::vector<std::uint8_t> codes_;
  device_bytes expected_scales_, expected_codes_;
};

TEST_P(Scales, OfEveryAmaxAreTheDefinitions) {
  const char* const asked = std::getenv("SAMEBITS_AMAX_STRIDE");
  const std::uint64_t stride =
      asked != nullptr ? std::stoull(asked) : support::by_effort(509u, 1'000'003u);
  ASSERT_TRUE(stride >= 1 && stride < std::uint64_t{1} << 31) << "SAMEBITS_AMAX_STRIDE";
  const std::uint64_t total = (amax_end + stride - 1) / stride;
  constexpr const char* subjects[] = {"the host", "cuda-emulated", "cuda-native",
                                      "GPU division and integers in a kernel"};
  difference found[one_level_scale_rules][std::size(subjects)] = {};
  for (std::uint64_t begin = 0; begin < total; begin += slice) {
    const amax_range amaxes = {
        static_cast<std::uint32_t>(begin * stride), static_cast<std::uint32_t>(stride),
        static_cast<std::int64_t>(std::min<std::uint64_t>(slice, total - begin))};
    fill<<<2048, 256>>>(amaxes, matrix_.as<std::uint32_t>());
    check_cuda(cudaGetLastError(), "fill");
    for (int r = 0; r < one_level_scale_rules; ++r) {
      const auto rule = static_cast<scale_rule>(r);
      expect(amaxes, rule);
      const difference of_slice[] = {
          on_host(amaxes, rule), on_gpu("cuda-emulated", emulated_cols, amaxes, rule),
          on_gpu("cuda-native", cols, amaxes, rule), support::seen_by([&](difference* seen) {
            compare_arithmetics<<<2048, 256>>>(amaxes, to(), {rule, nonfinite::propagate}, seen);
          })};
      for (std::size_t s = 0; s < std::size(subjects); ++s) {
        difference& all = found[r][s];
        if (all.count == 0) all.first = of_slice[s].first;
        all.count += of_slice[s].count;
      }
    }
  }
  for (int r = 0; r < one_level_scale_rules; ++r) {
    for (std::size_t s = 0; s < std::size(subjects); ++s) {
      const difference& d = found[r][s];
      std::printf("%s %s, %s: compared %llu, differing %llu\n",
                  std::string(name(GetParam())).c_str(),
                  std::string(name(static_cast<scale_rule>(r))).c_str(), subjects[s],
                  static_cast<unsigned long long>(total), d.count);
      EXPECT_EQ(d.count, 0u) << "the first at amax " << std::hex << d.first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Scales, ::testing::Values(format_id::e4m3, format_id::e5m2),
                         [](const auto& tested) { return std::string(name(tested.param)); });

}  // namespace
}  // namespace samebits
