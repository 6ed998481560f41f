// The test kit: proves a user's quantizer against a recipe, and names a planted error of the scale
// rule in a variant of the quantizer.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <span>

#include "samebits/scalar.hpp"
#include "samebits/testkit/quantize.hpp"

using namespace samebits;

enum class scaling { by_division, by_reciprocal };

/// Quantizes tiles of 1 x 128 as DeepSeek-V3 does: s = max(amax, 1e-4) / 448, code = e4m3(x / s).
template <scaling Scaling>
void quantize_rows(std::span<const float> in, std::int64_t rows, std::int64_t cols,
                   std::span<std::uint8_t> codes, std::span<float> scales) {
  std::size_t tile = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t col = 0; col < cols; col += 128) {
      const auto first = static_cast<std::size_t>(row * cols + col);
      const auto count = static_cast<std::size_t>(std::min<std::int64_t>(128, cols - col));
      float amax = 1e-4f;
      for (const float x : in.subspan(first, count)) amax = std::max(amax, std::abs(x));
      const float s = amax / 448;
      scales[tile++] = s;
      for (std::size_t i = first; i < first + count; ++i) {
        const float y = Scaling == scaling::by_division ? in[i] / s : in[i] * (1 / s);
        codes[i] = encode<format_id::e4m3>(y, {rounding::nearest_even, overflow::saturate});
      }
    }
  }
}

/// Checks every code and scale of finite matrices.
template <scaling Scaling>
testkit::quantize_check_result prove() {
  testkit::quantizer_under_test mine = testkit::quantizer_of("DSV3_IEEE");
  mine.domain = {.nan = false, .infinite = false};
  return testkit::check_quantize(mine, quantize_rows<Scaling>);
}

int main() {
  const testkit::quantize_check_result right = prove<scaling::by_division>();
  std::cout << "division: " << right.compared() << " results, "
            << (right ? "0 differ" : "some differ") << "\n"
            << right.message();

  const testkit::quantize_check_result planted = prove<scaling::by_reciprocal>();
  std::cout << "reciprocal: " << (planted ? "not caught" : "caught") << "\n"
            << planted.message() << "\n";
  return right && planted.failure() ? 0 : 1;
}
