// Rows for tests of functions of PyTorch.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/core/format.hpp"
#include "support/function_sum.hpp"

namespace samebits::torch_rows {

namespace torch = numerics::torch_2_11;
using support::word_sum;
using row = std::vector<std::uint32_t>;

inline float number(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t bits(float x) {
  return std::isnan(x) ? numerics::binary32::nan : std::bit_cast<std::uint32_t>(x);
}

/// Numbers of a format near `centre`, pseudo-random.
inline row random_row(format_id format, std::int64_t n, std::uint64_t seed, float centre = 0) {
  row x;
  for (std::int64_t i = 0; i < n; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const float uniform = static_cast<float>(seed >> 40) * 0x1p-23f - 1;
    x.push_back(torch::stored(format, bits(centre + 8 * uniform * uniform * uniform)));
  }
  return x;
}

/// A row, and behind it a number so large that it would change every sum.
inline row guarded(row x) {
  x.push_back(0x60123456);
  return x;
}

}  // namespace samebits::torch_rows
