// The reference backend: plain loops over the definition in numerics/.
#pragma once

#include "backends/dispatch/backend.hpp"

namespace samebits::backends {

extern const backend reference;
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): decision 0009
extern self_test_entry reference_self_test;

/// backends/reference/quantize.cpp
extern const quantizer reference_quantizer;

/// backends/reference/array_arithmetic.cpp
extern const calculator reference_calculator;

/// backends/reference/plan.cpp
extern const plan_kernels reference_plan_kernels;

/// backends/reference/reductions.cpp; used by every host backend.
extern const reducer host_reducer;

/// backends/reference/matmul.cpp
extern const matrix_multiplier reference_multiplier;
/// The tensor_core sum of one element of D, as binary32 bits.
std::uint32_t reference_tensor_core_sum(const matmul_call& call, std::int64_t row,
                                        std::int64_t col);

void reference_convert(const convert_call& call, element_range range);

}  // namespace samebits::backends
