// Array arithmetic compiled for AVX-512. This file must define nothing else.
#include "backends/simd/arithmetic/arithmetic_walk.hpp"
#include "backends/simd/arithmetic/steps_avx512.hpp"
#include "backends/simd/simd.hpp"

namespace samebits::backends {

void avx512_compute(const compute_call& call, element_range range) {
  simd::compute<avx512::registers>(call, range);
}

}  // namespace samebits::backends
