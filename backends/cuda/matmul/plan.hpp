// Products in device memory by an algorithm of cuBLASLt that was compared with the rule.
#pragma once

#include <memory>

#include "backends/dispatch/calls/matmul.hpp"

namespace samebits::cuda {

/// Chooses an algorithm for a checked call, and waits. Only the alignment of the call's addresses is
/// used; no element is read or written. Throws what matmul_plan does.
std::shared_ptr<const backends::device_product> plan_product(const backends::matmul_call& call,
                                                             void* stream);

}  // namespace samebits::cuda
