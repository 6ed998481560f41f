// Rows for tests of functions of rows: numbers, comparisons, and a thread block's sum as PyTorch's
// kernels compute it, with the processor's floats.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/core/format.hpp"

namespace samebits::torch_rows {

namespace torch = numerics::torch_2_11;
using row = std::vector<std::uint32_t>;
using floats = std::vector<float>;

inline float number(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t bits(float x) {
  return std::isnan(x) ? numerics::binary32::nan : std::bit_cast<std::uint32_t>(x);
}
inline float stored(format_id format, float x) { return number(torch::stored(format, bits(x))); }
inline floats numbers(const row& x) {
  floats y;
  for (const std::uint32_t code : x) y.push_back(number(code));
  return y;
}

/// Numbers of a format near `centre`, pseudo-random.
inline row random_row(format_id format, std::int64_t n, std::uint64_t seed, float centre = 0) {
  row x;
  for (std::int64_t i = 0; i < n; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const float uniform = static_cast<float>(seed >> 40) * 0x1p-23f - 1;
    x.push_back(bits(stored(format, centre + 8 * uniform * uniform * uniform)));
  }
  return x;
}

/// WARP_SHFL_DOWN within one warp: lane 0 is the result.
inline float warp_sum(floats lanes) {
  for (std::size_t offset = 16; offset > 0; offset /= 2) {
    const floats before = lanes;
    for (std::size_t l = 0; l < 32; ++l) {
      lanes[l] = before[l] + before[l + offset < 32 ? l + offset : l];
    }
  }
  return lanes[0];
}
/// The sum of a block, from one sum per thread.
inline float block_sum(const floats& sums) {
  floats of_warps(32, 0.0f);
  for (std::size_t w = 0; w < sums.size() / 32; ++w) {
    of_warps[w] = warp_sum(floats(sums.begin() + static_cast<std::ptrdiff_t>(32 * w),
                                  sums.begin() + static_cast<std::ptrdiff_t>(32 * w + 32)));
  }
  return warp_sum(of_warps);
}

inline constexpr std::uint32_t behind_the_row = 0x60123456;  // large: it would change every sum
inline row guarded(row x) {
  x.push_back(behind_the_row);
  return x;
}

/// Compares a row that guarded() made.
inline void expect_equal(const floats& expected, row got, const char* what, format_id format,
                         std::int64_t shift) {
  ASSERT_EQ(got.back(), behind_the_row) << what;
  got.pop_back();
  ASSERT_EQ(expected.size(), got.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(bits(expected[i]), got[i])
        << what << " " << name(format) << " n " << got.size() << " shift " << shift << " at " << i;
  }
}

}  // namespace samebits::torch_rows
