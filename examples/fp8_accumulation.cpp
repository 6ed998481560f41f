// FP8 accumulation error over K: computes dot products as Hopper's tensor core does, with and
// without promotion into FP32, without a GPU.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <vector>

#include "samebits/samebits.hpp"

namespace {

using namespace samebits;

constexpr std::int64_t rows = 16, cols = 16;

/// Returns bell-shaped random numbers from the library's own random bits: equal on every machine.
std::vector<e4m3> draw(std::int64_t count, std::uint64_t seed) {
  std::vector<e4m3> x;
  for (std::int64_t i = 0; i < count; ++i) {
    float sum = 0;
    for (std::uint64_t k = 0; k < 8; ++k) {
      const auto index = static_cast<std::uint64_t>(i) * 8 + k;
      sum += static_cast<float>(random_word(seed, 0, index, 16)) / 65536.0f - 0.5f;
    }
    x.emplace_back(sum);
  }
  return x;
}

/// Returns sqrt(sum of squared errors / sum of squared exact results).
double relative_error(const std::vector<e4m3>& a, const std::vector<e4m3>& b, std::int64_t depth,
                      std::int64_t promotion) {
  std::vector<float> d(rows * cols);
  const prediction p =
      predict(view_of(a.data(), rows, depth), transposed(view_of(b.data(), cols, depth)),
              view_of(d.data(), rows, cols),
              accumulator::tensor_core(tensor_unit::hopper_wgmma, promotion));
  return std::sqrt(p.error.noise / p.error.signal);
}

}  // namespace

int main() {
  std::cout << "      K   no promotion   promotion every 128\n" << std::scientific;
  double worst_without = 0;
  double worst_with = 0;
  double first_without = 0;
  for (std::int64_t depth = 128; depth <= 32768; depth *= 4) {
    const std::vector<e4m3> a = draw(rows * depth, 1);
    const std::vector<e4m3> b = draw(cols * depth, 2);
    const double without = relative_error(a, b, depth, 0);
    const double with = relative_error(a, b, depth, 128);
    std::cout << std::setw(7) << depth << std::setprecision(2) << std::setw(15) << without
              << std::setw(22) << with << "\n";
    if (depth == 128) first_without = without;
    worst_without = std::max(worst_without, without);
    worst_with = std::max(worst_with, with);
  }
  const bool grows = worst_without > 4 * first_without && worst_with < 2 * first_without;
  std::cout << "the error grows with K without promotion alone: " << (grows ? "yes" : "no") << "\n";
}
