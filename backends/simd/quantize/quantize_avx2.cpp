// The quantization kernel compiled for AVX2. This file must define nothing else.
#include "backends/simd/lanes/lanes_avx2.hpp"
#include "backends/simd/lanes/partial_sums_avx2.hpp"
#include "backends/simd/quantize/chunk_pass.hpp"
#include "backends/simd/quantize/quantize_kernel.hpp"
#include "backends/simd/simd.hpp"

namespace samebits::backends {

const quantize_kernel avx2_quantize_kernel = {
    simd::quantize_tiles<avx2::isa>, simd::amax_of_elements<avx2::isa>,
    simd::cast_elements<avx2::isa>, simd::scales_of_tiles<avx2::isa>,
    simd::quantize_chunks<avx2::partial_sums_isa>};

}  // namespace samebits::backends
