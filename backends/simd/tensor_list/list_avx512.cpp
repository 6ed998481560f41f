// The tensor list kernels compiled for AVX-512. This file must define nothing else.
#include "backends/simd/lanes/partial_sums_avx512.hpp"
#include "backends/simd/simd.hpp"
#include "backends/simd/tensor_list/list_kernel.hpp"

namespace samebits::backends {

const list_lanes_kernel avx512_list_lanes = {
    simd::inspect<avx512::partial_sums_isa>, simd::scale<avx512::isa>,
    simd::accumulate<avx512::isa>, simd::combine<avx512::isa>};

}  // namespace samebits::backends
