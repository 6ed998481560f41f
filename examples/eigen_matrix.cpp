// Eigen: a Matrix of bf16 weights, a Map of e4m3 activations over a buffer of codes, and a product
// accumulated in float after an explicit cast.
#include <Eigen/Dense>
#include <cstdint>
#include <iostream>
#include <vector>

#include "samebits/eigen.hpp"
#include "samebits/samebits.hpp"

int main() {
  using samebits::bf16;
  using samebits::e4m3;
  Eigen::MatrixXf w(4, 8), x(8, 3);
  for (Eigen::Index i = 0; i < w.size(); ++i)
    w.data()[i] = 0.01f * static_cast<float>(i % 13) - 0.06f;
  for (Eigen::Index i = 0; i < x.size(); ++i) x.data()[i] = 0.1f * static_cast<float>(i % 7) - 0.3f;

  const Eigen::Matrix<bf16, Eigen::Dynamic, Eigen::Dynamic> weights = w.cast<bf16>();

  std::vector<std::uint8_t> codes(static_cast<std::size_t>(x.size()));  // as read from a file
  Eigen::Map<Eigen::Matrix<e4m3, Eigen::Dynamic, Eigen::Dynamic>> activations(
      reinterpret_cast<e4m3*>(codes.data()), x.rows(), x.cols());
  samebits::convert(samebits::view_of(x), samebits::view_of(activations));

  const Eigen::MatrixXf product = weights.cast<float>() * activations.cast<float>();
  std::cout << "first weights " << weights(0, 0) << " " << weights(1, 0) << "\n"
            << "largest error " << (product - w * x).cwiseAbs().maxCoeff() << "\n";
}
