// The conversion kernel compiled for AVX2. This file must define nothing else.
#include "backends/simd/convert/convert_walk.hpp"
#include "backends/simd/lanes/lanes_avx2.hpp"
#include "backends/simd/simd.hpp"

namespace samebits::backends {

void avx2_convert(const convert_call& call, element_range range) {
  simd::convert<avx2::isa>(call, range);
}

}  // namespace samebits::backends
