// The quantization kernel compiled for AVX-512. This file must define nothing else.
#include "backends/simd/lanes/lanes_avx512.hpp"
#include "backends/simd/lanes/partial_sums_avx512.hpp"
#include "backends/simd/quantize/chunk_pass.hpp"
#include "backends/simd/quantize/quantize_kernel.hpp"
#include "backends/simd/simd.hpp"

namespace samebits::backends {

const quantize_kernel avx512_quantize_kernel = {
    simd::quantize_tiles<avx512::isa>, simd::amax_of_elements<avx512::isa>,
    simd::cast_elements<avx512::isa>, simd::scales_of_tiles<avx512::isa>,
    simd::quantize_chunks<avx512::partial_sums_isa>};

}  // namespace samebits::backends
