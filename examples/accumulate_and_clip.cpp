// Gradient accumulation over a tensor list: sums FP16 gradients of eight micro-batches in FP32,
// inspects and unscales the sums, and clips the sums by the norm of all tensors together.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "samebits/samebits.hpp"

namespace {

using samebits::fp16;
using samebits::tensor_list;
using samebits::view_of;

constexpr std::uint64_t parts = 8;
constexpr double max_norm = 0.1;

float random_value(std::uint64_t index) {  // the same on every machine
  return static_cast<float>(samebits::random_word(1, 0, index, 16)) / 32768.0f - 1.0f;
}

/// FP16 gradients of two tensors, as a backward pass writes them, and their FP32 sums.
struct gradients {
  std::vector<fp16> weight = std::vector<fp16>(300 * 40);
  std::vector<fp16> bias = std::vector<fp16>(40);
  std::vector<float> weight_sum = std::vector<float>(300 * 40);
  std::vector<float> bias_sum = std::vector<float>(40);

  tensor_list parts_list() {
    return tensor_list({{view_of(weight.data(), 300, 40), "weight"}, {view_of(bias), "bias"}});
  }
  tensor_list sums_list() {
    return tensor_list(
        {{view_of(weight_sum.data(), 300, 40), "weight"}, {view_of(bias_sum), "bias"}});
  }
  void clear() {
    std::fill(weight_sum.begin(), weight_sum.end(), 0.0f);
    std::fill(bias_sum.begin(), bias_sum.end(), 0.0f);
  }
  /// Backward pass of one micro-batch, for a loss multiplied by `scale`.
  void backward(float scale, std::uint64_t batch) {
    const std::uint64_t first = batch * (weight.size() + bias.size());
    const float factor = scale * (2e-3f / static_cast<float>(parts));
    for (std::size_t i = 0; i < weight.size(); ++i) {
      weight[i] = fp16(factor * random_value(first + i));
    }
    for (std::size_t i = 0; i < bias.size(); ++i) {
      bias[i] = fp16(100 * factor * random_value(first + weight.size() + i));
    }
  }
};

}  // namespace

int main() {
  gradients g;
  const tensor_list micro = g.parts_list();  // constructed once, used in every step
  const tensor_list sums = g.sums_list();
  samebits::loss_scaler scaler(samebits::native_scaling{.init_exponent = 22, .hysteresis = 1});

  for (std::uint64_t step = 0; step < 4; ++step) {
    g.clear();
    const auto scale = static_cast<float>(scaler.get_scale());
    for (std::uint64_t batch = 0; batch < parts; ++batch) {
      g.backward(scale, step * parts + batch);
      samebits::accumulate(sums, micro);
    }
    const samebits::inspect_report scaled = samebits::inspect(sums);
    const samebits::unscale_report seen = scaler.unscale(sums);
    std::cout << "step " << step << ", scale 2^" << std::log2(scale) << ": ";
    if (seen.first_bad >= 0) {
      const auto position = static_cast<std::size_t>(seen.first_bad);
      std::cout << scaled.tensors[position].inf << " infinite in " << sums.name(position) << ", ";
    }
    const samebits::clip_report clipped = samebits::clip(sums, max_norm);
    const bool applied = scaler.step([&] {
      std::cout << "norm " << clipped.norm << " clipped to " << samebits::l2norm(sums).total;
    });
    std::cout << (applied ? "\n" : "skipped\n");
    scaler.update();
  }
}
