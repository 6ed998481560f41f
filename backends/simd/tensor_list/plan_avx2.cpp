// The tensor list kernels compiled for AVX2. This file must define nothing else.
#include "backends/simd/lanes/nodes_avx2.hpp"
#include "backends/simd/simd.hpp"
#include "backends/simd/tensor_list/plan_kernel.hpp"

namespace samebits::backends {

const plan_lanes_kernel avx2_plan_lanes = {simd::inspect<avx2::node_isa>, simd::scale<avx2::isa>,
                                           simd::accumulate<avx2::isa>, simd::combine<avx2::isa>};

}  // namespace samebits::backends
