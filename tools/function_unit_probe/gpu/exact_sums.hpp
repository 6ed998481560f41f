// Sums of the results of functions of the rule `exact` on the current GPU.
#pragma once

#include <cstdint>

#include "numerics/functions/exact_functions.hpp"

namespace samebits::cuda {

/// The sum over all 2^32 operands of the results of cuda-native; see exact_row.
/// A gradient's results are those for a gradient of 1. Takes 768 MiB of device memory, on the
/// default stream.
std::uint64_t exact_sum(const numerics::real::exact_row& f);

}  // namespace samebits::cuda
