// Why bf16 weights stop learning, and what keeps small updates: one parameter of 256 weights that
// start at 1, stored in six ways, 1000 AdamW steps of pure weight decay. Each step multiplies a weight
// by 0.9999; exact arithmetic ends at 0.9048.
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "samebits/samebits.hpp"

namespace {

using samebits::bf16;
using samebits::low_part;
using samebits::optimizer_tensor;
using samebits::stored_format;

constexpr std::size_t count = 256;

/// The arrays of a parameter; a mode uses some of them.
struct parameter {
  std::vector<float> fp32 = std::vector<float>(count, 1.0f);
  std::vector<bf16> weights = std::vector<bf16>(count, bf16(1.0f));
  std::vector<std::uint16_t> low = std::vector<std::uint16_t>(count);
  std::vector<float> gradient = std::vector<float>(count);
  std::vector<float> first = std::vector<float>(count), second = std::vector<float>(count);

  optimizer_tensor tensor(stored_format format) {
    optimizer_tensor t;
    t.weights = {weights.data(), format};
    t.gradient = {gradient.data(), stored_format::fp32};
    t.states = {{{first.data(), stored_format::fp32}, {second.data(), stored_format::fp32}}};
    t.count = count;
    return t;
  }
};

void train(const optimizer_tensor& tensor) {
  const samebits::optimizer_list list({tensor});
  const samebits::optimizer_settings adamw = {.learning_rate = 1e-3, .weight_decay = 0.1};
  for (std::uint64_t step = 1; step <= 1000; ++step) {
    optimizer_step(list, {&adamw, 1}, {.applied_steps = step, .seed = 1});
  }
}

/// Prints the mean of the weights that the model reads.
template <class Weights>
void print(const std::string& name, const Weights& weights) {
  double sum = 0;
  for (const auto w : weights) sum += static_cast<double>(static_cast<float>(w));
  std::cout << std::setw(28) << std::left << name << std::fixed << std::setprecision(4)
            << sum / count << "\n";
}

}  // namespace

int main() {
  parameter full;
  optimizer_tensor plain = full.tensor(stored_format::fp32);
  plain.weights.codes = full.fp32.data();
  train(plain);
  print("fp32", full.fp32);

  parameter nearest;
  train(nearest.tensor(stored_format::bf16_nearest));
  print("bf16, nearest", nearest.weights);

  parameter stochastic;
  train(stochastic.tensor(stored_format::bf16_stochastic));
  print("bf16, stochastic", stochastic.weights);

  parameter kahan;
  optimizer_tensor compensated = kahan.tensor(stored_format::bf16_nearest);
  compensated.low = kahan.low.data();
  compensated.low_kind = low_part::kahan;
  train(compensated);
  print("bf16 with rounding error", kahan.weights);

  parameter split;
  optimizer_tensor halves = split.tensor(stored_format::bf16_nearest);
  halves.low = split.low.data();
  halves.low_kind = low_part::split;
  train(halves);
  print("bf16 with low half", split.weights);

  parameter master;
  optimizer_tensor with_master = master.tensor(stored_format::bf16_nearest);
  with_master.master = {master.fp32.data(), stored_format::fp32};
  train(with_master);
  print("bf16 with fp32 master", master.weights);
}
