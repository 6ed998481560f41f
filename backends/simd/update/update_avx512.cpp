// Optimizer steps compiled for AVX-512. This file must define nothing else.
#include "backends/simd/lanes/lanes_avx512.hpp"
#include "backends/simd/update/update.hpp"
#include "backends/simd/update/update_kernel.hpp"
#include "backends/simd/update/update_steps_avx512.hpp"

namespace samebits::backends {

const update_lanes_kernel avx512_update_lanes =
    simd::update_lanes_of<avx512::isa, avx512::update_hardware>;

}  // namespace samebits::backends
