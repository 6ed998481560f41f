// Quantizes as DeepSeek-V3 does: activations in tiles of 1 x 128, weights in tiles of 128 x 128, s
// = amax / 448.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <vector>

#include "samebits/samebits.hpp"

namespace {

using namespace samebits;

struct quantized {
  std::vector<e4m3> codes;
  std::vector<float> scales;
  matrix_shape tiles;
  quantize_statistics statistics;
};

quantized quantize_matrix(const std::vector<bf16>& x, std::int64_t rows, std::int64_t cols,
                          tile_shape tile) {
  quantized q{std::vector<e4m3>(x.size()), {}, scales_shape(rows, cols, tile), {}};
  q.scales.resize(static_cast<std::size_t>(q.tiles.rows * q.tiles.cols));
  // The formula of inference/kernel.py, with IEEE division: x / (max(amax, 1e-4) / 448).
  quantize(view_of(x.data(), rows, cols),
           {.codes = view_of(q.codes.data(), rows, cols),
            .scales = view_of(q.scales.data(), q.tiles.rows, q.tiles.cols),
            .statistics = &q.statistics},
           {.tile = tile, .scale = scale_rule::div, .eps = 1e-4f});
  return q;
}

void report(const char* what, const quantized& q) {
  const quantize_statistics& s = q.statistics;
  std::cout << what << ": scales [" << q.tiles.rows << ", " << q.tiles.cols << "], SQNR "
            << std::fixed << std::setprecision(1) << 10 * std::log10(s.signal / s.noise)
            << " dB, underflowed " << s.underflowed << ", saturated " << s.saturated << "\n";
}

/// Returns bell-shaped random numbers from the library's own random bits: equal on every machine.
std::vector<bf16> noise(std::int64_t count, std::uint64_t seed, float size) {
  std::vector<bf16> x;
  for (std::int64_t i = 0; i < count; ++i) {
    float sum = 0;
    for (std::uint64_t k = 0; k < 8; ++k) {
      const auto index = static_cast<std::uint64_t>(i) * 8 + k;
      sum += static_cast<float>(random_word(seed, 0, index, 16)) / 65536.0f - 0.5f;
    }
    x.emplace_back(size * sum);
  }
  return x;
}

}  // namespace

int main() {
  constexpr std::int64_t tokens = 100, width = 576, out = 300;  // no multiples of 128
  const std::vector<bf16> activations = noise(tokens * width, 1, 3.0f);
  const std::vector<bf16> weights = noise(out * width, 2, 0.05f);

  const quantized x = quantize_matrix(activations, tokens, width, {1, 128});
  report("activations", x);
  const quantized w = quantize_matrix(weights, out, width, {128, 128});
  report("weights", w);

  // Dequantize to bf16: the value of a code times its tile's scale.
  std::vector<bf16> restored(weights.size());
  dequantize(view_of(w.codes.data(), out, width),
             view_of(w.scales.data(), w.tiles.rows, w.tiles.cols),
             view_of(restored.data(), out, width), {128, 128});
  float worst = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float d = static_cast<float>(weights[i]) - static_cast<float>(restored[i]);
    worst = std::max(worst, std::abs(d));
  }
  std::cout << "largest error of a weight: " << std::setprecision(4) << worst << "\n";
}
