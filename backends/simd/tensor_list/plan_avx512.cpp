// The tensor list kernels compiled for AVX-512. This file must define nothing else.
#include "backends/simd/lanes/nodes_avx512.hpp"
#include "backends/simd/simd.hpp"
#include "backends/simd/tensor_list/plan_kernel.hpp"

namespace samebits::backends {

const plan_lanes_kernel avx512_plan_lanes = {
    simd::inspect<avx512::node_isa>, simd::scale<avx512::isa>, simd::accumulate<avx512::isa>,
    simd::combine<avx512::isa>};

}  // namespace samebits::backends
