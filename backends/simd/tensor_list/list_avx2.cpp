// The tensor list kernels compiled for AVX2. This file must define nothing else.
#include "backends/simd/lanes/partial_sums_avx2.hpp"
#include "backends/simd/simd.hpp"
#include "backends/simd/tensor_list/list_kernel.hpp"

namespace samebits::backends {

const list_lanes_kernel avx2_list_lanes = {simd::inspect<avx2::partial_sums_isa>,
                                           simd::scale<avx2::isa>, simd::accumulate<avx2::isa>,
                                           simd::combine<avx2::isa>};

}  // namespace samebits::backends
