// Products in device memory by an algorithm of cuBLASLt that was compared with the rule.
#pragma once

#include <memory>

#include "backends/dispatch/calls/matmul.hpp"

namespace samebits::cuda {

/// Chooses an algorithm for a checked call, and waits. The addresses of the call tell alignments
/// alone. Throws what matmul_plan does.
std::shared_ptr<const backends::device_product> plan_product(const backends::matmul_call& call,
                                                             void* stream);

}  // namespace samebits::cuda
