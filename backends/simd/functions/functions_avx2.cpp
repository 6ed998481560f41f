// Functions of arrays compiled for AVX2 and FMA. This file must define nothing else.
#include <cstdint>

#include "backends/simd/functions/functions.hpp"
#include "backends/simd/functions/units_avx2.hpp"
#include "backends/simd/lanes/lanes_avx2.hpp"
#include "numerics/hardware/evaluate.hpp"
#include "samebits/core/config.hpp"

namespace samebits::avx2 {

using turns = numerics::cuda_13_0::quarter_turns<lanes>;

struct alignas(32) words_of_lanes {
  std::uint32_t word[lanes::count];
};
SAMEBITS_INLINE words_of_lanes stored_words(lanes x) {
  words_of_lanes words;
  _mm256_store_si256(reinterpret_cast<__m256i*>(words.word), x.v);
  return words;
}
SAMEBITS_INLINE lanes loaded(const words_of_lanes& words) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(words.word));
}

/// Large angles are rare in practice: their lanes are computed one by one.
SAMEBITS_INLINE turns reduce_large_angle(mask large, lanes x, const turns& small) {
  if (_mm256_testz_si256(large.v, large.v) != 0) return small;
  const words_of_lanes chosen = stored_words(large.v);
  const words_of_lanes operands = stored_words(x);
  words_of_lanes angle = stored_words(small.angle);
  words_of_lanes quadrant = stored_words(small.quadrant);
  backends::reduce_large_angles(chosen.word, operands.word, angle.word, quadrant.word,
                                lanes::count);
  return {loaded(angle), loaded(quadrant)};
}

SAMEBITS_INLINE lanes lg2_approx(lanes x) {
  words_of_lanes words = stored_words(x);
  backends::scalar_lg2_approx(words.word, lanes::count);
  return loaded(words);
}

}  // namespace samebits::avx2

namespace samebits::backends {

void avx2_evaluate_codes(const numerics::function_plan& plan, const std::uint32_t* grad,
                         std::uint32_t* codes, int count) {
  using avx2::lanes;
  for (int i = 0; i < count; i += lanes::count) {
    auto* const at = reinterpret_cast<__m256i*>(codes + i);
    const lanes x = _mm256_loadu_si256(at);
    lanes y = x;
    if (grad == nullptr) {
      y = numerics::evaluate_code<lanes>(plan, x);
    } else {
      const lanes g = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(grad + i));
      y = numerics::evaluate_gradient_code<lanes>(plan, g, x);
    }
    _mm256_storeu_si256(at, y.v);
  }
}

}  // namespace samebits::backends
