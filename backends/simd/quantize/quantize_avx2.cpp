// The quantization kernel compiled for AVX2. This file must define nothing else.
#include "backends/simd/lanes/lanes_avx2.hpp"
#include "backends/simd/quantize/quantize_kernel.hpp"
#include "backends/simd/simd.hpp"

namespace samebits::backends {

const quantize_kernel avx2_quantize_kernel = {simd::quantize_tiles<avx2::isa>,
                                              simd::amax_of_elements<avx2::isa>,
                                              simd::cast_elements<avx2::isa>};

}  // namespace samebits::backends
