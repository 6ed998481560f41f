// A check of a quantizer before its failure becomes a text.
#pragma once

#include <vector>

#include "engine/kit/failed_call.hpp"
#include "samebits/testkit/quantize.hpp"

namespace samebits::testkit {

/// check_raw_quantize() for a function that sees the trial. Arrays are [input, scales, codes].
///
/// @param shapes  of the first matrices, in this order; all others have one of them. Empty: any shape
check_outcome check_quantizer_calls(const quantizer_under_test& quantizer,
                                    const array_function& function, const quantize_effort& effort,
                                    const std::vector<matrix_shape>& shapes = {});

}  // namespace samebits::testkit
