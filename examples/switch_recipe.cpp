// Moves a training script from DeepGEMM's bits to TransformerEngine's: quantizes by both recipes,
// counts the differences by cause, and arranges the scales for the other library's products.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <span>
#include <vector>

#include "samebits/error.hpp"
#include "samebits/quantize.hpp"
#include "samebits/recipe.hpp"
#include "samebits/scalar.hpp"
#include "samebits/scale_layout.hpp"
#include "samebits/types.hpp"

namespace {

using namespace samebits;

constexpr std::int64_t tokens = 256, width = 2048, tile = 128, tiles = width / tile;

struct quantized {
  std::vector<e4m3> codes = std::vector<e4m3>(tokens * width);
  std::vector<float> scales = std::vector<float>(tokens * tiles);
};

quantized quantized_by(const recipe& rules, const std::vector<bf16>& x) {
  quantized q;
  quantize(view_of(x.data(), tokens, width),
           {.codes = view_of(q.codes.data(), tokens, width),
            .scales = view_of(q.scales.data(), tokens, tiles)},
           rules);
  return q;
}

/// Cause of differences in a tile; the first one that holds.
enum cause { special, zeros, below_eps, formula };
constexpr const char* cause_names[] = {
    "NaN or Inf: DeepGEMM's tile is poisoned, TransformerEngine's skips NaN and takes Inf as s = 1",
    "zeros: s from eps in DeepGEMM, 1 in TransformerEngine", "amax below DeepGEMM's eps of 1e-4",
    "another formula of the scale"};

cause cause_of(std::span<const bf16> x) {
  float amax = 0;
  for (const bf16 v : x) {
    const float value = static_cast<float>(v);
    if (!std::isfinite(value)) return special;
    amax = std::max(amax, std::abs(value));
  }
  return amax == 0 ? zeros : amax < 1e-4f ? below_eps : formula;
}

/// Returns the rank of a code in the order of values. Neighbouring values have consecutive ranks.
int rank(e4m3 code) {
  const int magnitude = code.bits() & 0x7F;
  return (code.bits() & 0x80) != 0 ? -magnitude : magnitude;
}

/// Counts of tiles, and of scales and codes that differ.
struct cause_counts {
  int tiles = 0, scales = 0, codes = 0;
  int max_ulps = 0;   ///< max distance between scales
  int max_steps = 0;  ///< max distance between codes, in ranks
};

void compare(const char* what, const recipe& from, const recipe& to, const std::vector<bf16>& x) {
  const quantized a = quantized_by(from, x), b = quantized_by(to, x);
  cause_counts by_cause[4];
  for (std::size_t t = 0; t < a.scales.size(); ++t) {
    cause_counts& c = by_cause[cause_of(std::span(x).subspan(t * tile, tile))];
    ++c.tiles;
    const auto bits = [](float s) { return std::bit_cast<std::int32_t>(s); };
    const int ulps = std::abs(bits(a.scales[t]) - bits(b.scales[t]));
    c.scales += ulps != 0 ? 1 : 0;
    c.max_ulps = std::max(c.max_ulps, ulps);
    for (std::size_t i = t * tile; i < (t + 1) * tile; ++i) {
      const int steps = std::abs(rank(a.codes[i]) - rank(b.codes[i]));
      c.codes += a.codes[i].bits() != b.codes[i].bits() ? 1 : 0;
      c.max_steps = std::max(c.max_steps, steps);
    }
  }
  std::cout << what << "\n";
  for (const cause why : {special, zeros, below_eps, formula}) {
    const cause_counts& c = by_cause[why];
    std::cout << "  " << c.tiles << " tiles, " << c.scales << " scales and " << c.codes
              << " codes differ: " << cause_names[why] << "\n";
    if (why == formula && c.scales != 0) {
      std::cout << "    scales by up to " << c.max_ulps << " ulp, codes by up to " << c.max_steps
                << ": ties of the rounding\n";
    }
  }
}

/// Returns bell-shaped random activations with one tile each of zeros, tiny numbers, NaN and Inf.
std::vector<bf16> activations() {
  std::vector<bf16> x;
  for (std::uint64_t i = 0; i < tokens * width; ++i) {
    float sum = 0;
    for (std::uint64_t k = 0; k < 8; ++k) {
      sum += static_cast<float>(random_word(1, 0, i * 8 + k, 16)) / 65536.0f - 0.5f;
    }
    const std::uint64_t of_tile = i / tile;
    x.emplace_back(of_tile == 3 ? 0.0f : of_tile == 5 ? 1e-6f * sum : sum);
  }
  x[7 * tile + 1] = bf16(std::numeric_limits<float>::quiet_NaN());
  x[9 * tile + 1] = bf16(std::numeric_limits<float>::infinity());
  return x;
}

}  // namespace

int main() {
  const std::vector<bf16> x = activations();
  const recipe te = find_recipe("TE_BLOCK_1D")->rules;
  compare("UE8M0 to power-of-two blocks:", find_recipe("DEEPGEMM_UE8M0")->rules, te, x);
  recipe te_fp32 = te;  // NVTE_FP8_BLOCK_SCALING_FP32_SCALES=1
  te_fp32.scale = scale_rule::te;
  compare("FP32 scales to FP32 blocks:", find_recipe("DEEPGEMM_FP32_CUDA")->rules, te_fp32, x);

  // The matrix products of both libraries expect other layouts than [tokens, tiles].
  const std::vector<float> scales = quantized_by(te, x).scales;
  const auto view = view_of(scales.data(), tokens, tiles);
  for (const scale_layout layout : {scale_layout::column_major, scale_layout::packed_ue8m0}) {
    std::vector<std::byte> memory(static_cast<std::size_t>(layout_bytes(layout, tokens, tiles)));
    arrange_scales(view, layout, memory);
    std::cout << name(layout) << ": " << memory.size() << " bytes\n";
  }
  const std::vector<float> fp32 = quantized_by(te_fp32, x).scales;
  std::vector<std::byte> packed(
      static_cast<std::size_t>(layout_bytes(scale_layout::packed_ue8m0, tokens, tiles)));
  try {
    arrange_scales(view_of(fp32.data(), tokens, tiles), scale_layout::packed_ue8m0, packed);
  } catch (const invalid_argument& e) {
    std::cout << "FP32 scales in packed_ue8m0: refused\n";
  }
}
