// Optimizer steps compiled for AVX2 and FMA. This file must define nothing else.
#include "backends/simd/lanes/lanes_avx2.hpp"
#include "backends/simd/update/update.hpp"
#include "backends/simd/update/update_kernel.hpp"
#include "backends/simd/update/update_steps_avx2.hpp"

namespace samebits::backends {

const update_lanes_kernel avx2_update_lanes =
    simd::update_lanes_of<avx2::isa, avx2::update_hardware>;

}  // namespace samebits::backends
