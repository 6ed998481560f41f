// Training with FP16 gradients and a loss scaler: the training loop, a checkpoint half way, and a
// comparison with training without a scaler.
#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "samebits/samebits.hpp"

namespace {

using samebits::fp16;
using samebits::loss_scaler;
using samebits::matrix_view;

constexpr std::size_t width = 32;
constexpr float loss_weight = 1e-9f;  // gradients around 1e-9, as deep in a network

float random_value(std::uint64_t index) {  // the same on every machine
  return static_cast<float>(samebits::random_word(1, 0, index, 16)) / 32768.0f - 1.0f;
}

/// A linear model y = w . x with FP32 weights and FP16 gradients.
struct model {
  std::vector<float> weights = std::vector<float>(width, 0.0f);
  std::vector<fp16> gradient = std::vector<fp16>(width);
  std::vector<float> master_gradient = std::vector<float>(width);
  float error = 0;
  std::uint64_t sample = 0;

  /// Returns loss_weight * (w . x - target . x)^2; the target is all ones.
  float forward(std::uint64_t step) {
    sample = step * width;
    error = 0;
    for (std::size_t i = 0; i < width; ++i) error += (weights[i] - 1.0f) * random_value(sample + i);
    return loss_weight * error * error;
  }
  /// Computes the gradients of the loss multiplied by `factor`.
  void backward(float factor) {
    for (std::size_t i = 0; i < width; ++i) {
      gradient[i] = fp16(factor * (loss_weight * 2.0f * error * random_value(sample + i)));
    }
    samebits::convert(samebits::view_of(gradient), samebits::view_of(master_gradient));
  }
  void step() {
    for (std::size_t i = 0; i < width; ++i) weights[i] -= 0.02f / loss_weight * master_gradient[i];
  }
  [[nodiscard]] double distance() const {
    double sum = 0;
    for (const float w : weights) sum += static_cast<double>(w - 1.0f) * (w - 1.0f);
    return std::sqrt(sum);
  }
};

void train(model& m, loss_scaler& scaler, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t step = from; step < to; ++step) {
    const float loss = m.forward(step);
    scaler.scale(loss);  // remembers a loss that is not finite
    m.backward(static_cast<float>(scaler.get_scale()));
    const matrix_view gradients[] = {samebits::view_of(m.master_gradient)};
    scaler.unscale(gradients);
    scaler.step([&] { m.step(); });
    scaler.update();
  }
}

}  // namespace

int main() {
  constexpr std::uint64_t steps = 2000;
  model unscaled;
  for (std::uint64_t step = 0; step < steps; ++step) {
    unscaled.forward(step);
    unscaled.backward(1.0f);
    unscaled.step();
  }
  std::cout << "distance at the start " << model().distance() << "\n";
  std::cout << "without scaling       " << unscaled.distance() << "\n";

  // The initial scale is far too high: the scaler lowers it, then keeps it below the overflow
  // limit.
  const samebits::native_scaling settings = {.init_exponent = 50, .max_exponent = 60};
  model whole;
  loss_scaler scaler(settings);
  train(whole, scaler, 0, steps);
  std::cout << "with loss_scaler      " << whole.distance() << ", "
            << steps - scaler.applied_steps() << " steps skipped, scale 2^"
            << std::log2(scaler.get_scale()) << "\n";

  // The same training with a checkpoint half way has the same bits.
  model resumed;
  std::string checkpoint;
  {
    loss_scaler first(settings);
    train(resumed, first, 0, steps / 2);
    checkpoint = first.save();
  }
  loss_scaler second = loss_scaler::load(checkpoint);
  train(resumed, second, steps / 2, steps);
  std::cout << "resumed: " << (resumed.weights == whole.weights ? "the same bits" : "other bits")
            << "\n";
}
