// Scalar functions that SIMD lanes fall back to. Compiled without instruction set flags.
#include "backends/simd/functions/functions.hpp"

#include "numerics/hardware/cuda_functions/two_over_pi.hpp"
#include "numerics/hardware/function_units/lg2.hpp"

namespace samebits::backends {

void reduce_large_angles(const std::uint32_t* large, const std::uint32_t* x, std::uint32_t* angle,
                         std::uint32_t* quadrant, int count) {
  for (int i = 0; i < count; ++i) {
    if (large[i] == 0) continue;
    const auto turns = numerics::cuda_13_0::reduce_large_angle(x[i]);
    angle[i] = turns.angle;
    quadrant[i] = turns.quadrant;
  }
}

void scalar_lg2_approx(std::uint32_t* x, int count) {
  for (int i = 0; i < count; ++i) x[i] = numerics::hopper::lg2_approx(x[i]);
}

}  // namespace samebits::backends
