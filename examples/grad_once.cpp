// A gradient that underflows in FP16 survives if the loss is scaled, and if the gradient is
// unscaled in FP32.
#include <iostream>
#include <span>
#include <vector>

#include "samebits/samebits.hpp"

namespace {

using samebits::fp16;

/// Returns d/dw of sum(w) * 1e-8 from an FP16 layer, for a loss multiplied by `scale`.
std::vector<fp16> backward(float scale) {
  const float d = scale * 1e-8f;  // the loss itself is computed in FP32
  std::vector<fp16> gradient(1024, fp16(d));
  return gradient;
}

std::vector<float> widened(const std::vector<fp16>& gradient) {
  std::vector<float> wide(gradient.size());
  samebits::convert(samebits::view_of(gradient), samebits::view_of(wide));
  return wide;
}

template <class T>
std::span<const samebits::matrix_view> list_of(const T& view) {
  return {&view, 1};
}

}  // namespace

int main() {
  std::cout << "exact gradient    1e-08\n";
  std::cout << "FP16, no scaling  " << static_cast<float>(backward(1.0f)[0]) << "\n";

  samebits::loss_scaler scaler;
  std::vector<fp16> scaled = backward(scaler.scale(1.0f));
  std::cout << "FP16, scaled      " << static_cast<float>(scaled[0]) << " at scale "
            << scaler.get_scale() << "\n";

  // Widened to FP32 first, then unscaled: the gradient for the optimizer.
  std::vector<float> master = widened(scaled);
  const samebits::matrix_view wide = samebits::view_of(master);
  scaler.unscale(list_of(wide));
  std::cout << "unscaled in FP32  " << master[0] << "\n";

  // Unscaled in place, in FP16: the gradient underflows.
  const samebits::matrix_view narrow = samebits::view_of(scaled);
  samebits::unscale(list_of(narrow), scaler.inverse_scale());
  std::cout << "unscaled in FP16  " << static_cast<float>(scaled[0]) << "\n";
}
