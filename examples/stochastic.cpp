// Stochastic rounding: the random bits of an element depend only on the element's position in the
// tensor. A shard that is converted elsewhere gets the bits it has in the whole tensor.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <vector>

#include "samebits/samebits.hpp"

int main() {
  using namespace samebits;
  constexpr std::int64_t rows = 64, cols = 128;
  const std::vector<float> x(rows * cols, 0.3f);  // between 0.28125 and 0.3125 in e4m3

  convert_options options{.rounding = rounding::stochastic, .random = {.seed = 42, .stream = 7}};
  std::vector<e4m3> whole(x.size());
  convert(view_of(x.data(), rows, cols), view_of(whole.data(), rows, cols), options);

  // Convert the right half of the columns alone: offset of the shard's first element, pitch of the
  // whole tensor.
  constexpr std::int64_t half = cols / 2;
  std::vector<e4m3> shard(rows * half);
  options.random.offset = half;
  options.random.pitch = cols;
  convert(view_of(x.data() + half, rows, half, cols), view_of(shard.data(), rows, half), options);

  bool same = true;
  double sum = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      const e4m3 in_whole = whole[static_cast<std::size_t>(r * cols + c)];
      sum += static_cast<double>(in_whole);
      if (c >= half) {
        same &= shard[static_cast<std::size_t>(r * half + c - half)].bits() == in_whole.bits();
      }
    }
  }
  std::cout << "same bits from any shard: " << (same ? "yes" : "no") << "\n"
            << "mean " << sum / (rows * cols) << " of 0.3 (nearest gives "
            << static_cast<float>(e4m3(0.3f)) << ")\n";
}
