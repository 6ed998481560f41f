// Array arithmetic compiled for AVX2. This file must define nothing else.
#include "backends/simd/arithmetic/arithmetic_walk.hpp"
#include "backends/simd/arithmetic/steps_avx2.hpp"
#include "backends/simd/simd.hpp"

namespace samebits::backends {

void avx2_compute(const compute_call& call, element_range range) {
  simd::compute<avx2::registers>(call, range);
}

}  // namespace samebits::backends
