// Scalar functions that SIMD lanes fall back to.
#pragma once

#include <cstdint>

namespace samebits::backends {

// Compiled without instruction set flags.

/// angle[i], quadrant[i] = the quarter turns of x[i], for large[i] != 0.
void reduce_large_angles(const std::uint32_t* large, const std::uint32_t* x, std::uint32_t* angle,
                         std::uint32_t* quadrant, int count);
/// x[i] = lg2.approx.f32 of x[i].
void scalar_lg2_approx(std::uint32_t* x, int count);

}  // namespace samebits::backends
