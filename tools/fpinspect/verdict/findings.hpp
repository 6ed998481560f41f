// Tensors of a verdict that need attention.
#pragma once

#include <span>
#include <vector>

#include "fpinspect/verdict/verdict.hpp"

namespace fpinspect {

/// Finds tensors with NaN or infinities, outlier channels, gradients that underflow, and tensors
/// that alone force their role to a wider format. One finding a tensor, most urgent first.
///
/// @param v  a verdict with roles and loss scale
std::vector<finding> findings_of(const verdict& v, std::span<const tensor_evidence> tensors);

}  // namespace fpinspect
