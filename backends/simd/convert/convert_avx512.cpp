// The conversion kernel compiled for AVX-512. This file must define nothing else.
#include "backends/simd/convert/convert_walk.hpp"
#include "backends/simd/lanes/lanes_avx512.hpp"
#include "backends/simd/simd.hpp"

namespace samebits::backends {

void avx512_convert(const convert_call& call, element_range range) {
  simd::convert<avx512::isa>(call, range);
}

}  // namespace samebits::backends
