// Rows for tests of functions of PyTorch: their numbers, and sums of results.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/core/format.hpp"

namespace samebits::torch_rows {

namespace torch = numerics::torch_2_11;
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

/// One number for any words: it changes with every word and with their order.
class word_sum {
 public:
  void add(std::uint32_t word) { value_ = value_ * 0x9E3779B97F4A7C15u + word; }
  void add(const row& words) {
    for (const std::uint32_t word : words) add(word);
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace samebits::torch_rows
