// Quickstart: converts an array of floats to OCP E4M3, saturating, and back.
#include <iostream>
#include <vector>

#include "samebits/samebits.hpp"

int main() {
  const std::vector<float> x = {0.3f, 1000.0f, 1e-5f};

  std::vector<samebits::e4m3> y(x.size());
  samebits::convert(samebits::view_of(x), samebits::view_of(y),
                    {.overflow = samebits::overflow::saturate});

  for (std::size_t i = 0; i < x.size(); ++i) {
    std::cout << x[i] << " -> " << static_cast<float>(y[i]) << "\n";
  }
}
