// Functions of arrays compiled for AVX-512. This file must define nothing else.
#include "backends/simd/functions/function_kernel.hpp"
#include "backends/simd/functions/functions.hpp"
#include "backends/simd/functions/units_avx512.hpp"
#include "backends/simd/lanes/lanes_avx512.hpp"

namespace samebits::avx512 {

// CUDA's functions find these by the namespace of their operands.
SAMEBITS_INLINE lanes lg2_approx(lanes x) { return simd::lg2_of<isa>(x); }
SAMEBITS_INLINE simd::quarter_turns<lanes> reduce_large_angle(
    mask large, lanes x, const simd::quarter_turns<lanes>& small) {
  return simd::turns_of_angle<isa>(large, x, small);
}

}  // namespace samebits::avx512

namespace samebits::backends {

void avx512_function_codes(const evaluate_call& call, function_chunk& chunk, int count) {
  simd::function_codes_of<avx512::isa>(call, chunk, count);
}

}  // namespace samebits::backends
