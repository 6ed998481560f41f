// Writes five files for tests of `fpinspect tensor`: healthy weights, gradients that underflow, one
// outlier channel, a checkpoint of 500 tensors, and a file with NaN.
//
//   verdict_files FOLDER
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/write_tensor_files.hpp"

namespace {

using samebits::tensor_file::dtype;
using samebits::tensor_file::named_tensor;

/// Bell-shaped values from integers alone, the same on every machine.
class random_values {
 public:
  explicit random_values(std::uint64_t seed) : state_(seed) {}

  /// The sum of 12 uniform values: mean 0, standard deviation 1.
  double bell() {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }

 private:
  /// A multiple of 2^-24 in [0, 1), by splitmix64.
  double uniform() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<double>((z ^ (z >> 31)) >> 40) * 0x1p-24;
  }

  std::uint64_t state_;
};

/// The tensors of a file in fp32.
class model {
 public:
  /// Adds a tensor of bell-shaped values; returns its values, for changes.
  std::vector<float>& add(std::string name, std::vector<std::uint64_t> shape, double deviation) {
    std::size_t count = 1;
    for (const std::uint64_t size : shape) count *= static_cast<std::size_t>(size);
    random_values random(names_.size() + 1);
    std::vector<float> values(count);
    for (float& x : values) x = static_cast<float>(deviation * random.bell());
    names_.push_back(std::move(name));
    shapes_.push_back(std::move(shape));
    return values_.emplace_back(std::move(values));
  }

  void write(const std::filesystem::path& path) const {
    std::vector<named_tensor> tensors;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      tensors.push_back({names_[i], dtype::f32, shapes_[i], std::as_bytes(std::span(values_[i]))});
    }
    samebits::tensor_file::testing::write_safetensors(path, tensors);
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<std::uint64_t>> shapes_;
  std::vector<std::vector<float>> values_;
};

model healthy() {
  model m;
  for (const char* layer : {"layers.0.q_proj.weight", "layers.0.up_proj.weight"}) {
    m.add(layer, {64, 256}, 0.02);
  }
  m.add("layers.0.norm.weight", {256}, 0.1);
  return m;
}

/// Gradients of two sizes. Factors from 1 to 2^-15, in no order, spread the smaller ones.
model underflow() {
  model m;
  m.add("grad.head", {64, 256}, 1e-3);
  std::vector<float>& small = m.add("grad.deep", {64, 256}, 1e-6);
  for (std::size_t i = 0; i < small.size(); ++i) {
    small[i] = std::ldexp(small[i], -static_cast<int>(i * 2654435761u >> 20 & 15));
  }
  return m;
}

/// Channel 17 is 2^16 times the others: one scale for the tensor makes many of them 0.
model outlier() {
  model m;
  m.add("act.attention", {64, 1024}, 1.0);
  std::vector<float>& values = m.add("act.mlp", {64, 1024}, 1.0);
  for (std::size_t i = 17; i < values.size(); i += 1024) values[i] = std::ldexp(values[i], 16);
  return m;
}

model checkpoint() {
  model m;
  for (int layer = 0; layer < 125; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    m.add(prefix + "weight", {8, 128}, 0.05);
    m.add(prefix + "bias", {8}, 0.05);
    m.add("grad." + prefix + "weight", {8, 128}, 1e-4);
    m.add("exp_avg." + prefix + "weight", {8, 128}, 1e-4);
  }
  return m;
}

model nan() {
  model m;
  m.add("w0.weight", {32, 256}, 0.02);
  std::vector<float>& values = m.add("w1.weight", {32, 256}, 0.02);
  for (const std::size_t i : {17u * 256 + 254, 20u * 256, 31u * 256}) {
    values[i] = std::numeric_limits<float>::quiet_NaN();
  }
  values[20 * 256 + 1] = std::numeric_limits<float>::infinity();
  return m;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  healthy().write(folder / "healthy.safetensors");
  underflow().write(folder / "underflow.safetensors");
  outlier().write(folder / "outlier.safetensors");
  checkpoint().write(folder / "checkpoint.safetensors");
  nan().write(folder / "nan.safetensors");
}
