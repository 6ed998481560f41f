// Optimizer steps in SIMD lanes: the functions that each instruction set compiles, and those of each
// backend.
#pragma once

#include "backends/dispatch/calls/optimizer.hpp"

namespace samebits::backends {

/// update_kernels::unscaled_codes by a conversion of arrays.
void convert_words(void (*convert)(const convert_call&, element_range), const stored_part& part,
                   const std::uint32_t* words);

extern const update_kernels avx2_update_lanes;
extern const update_kernels avx512_update_lanes;

const update_kernels& avx2_update_kernels();
const update_kernels& avx512_update_kernels();

}  // namespace samebits::backends
