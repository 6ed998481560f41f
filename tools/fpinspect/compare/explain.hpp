// The known rule that makes the values of one tensor from those of another.
#pragma once

#include "fpinspect/compare/comparison.hpp"

namespace fpinspect {

/// "B is A rounded to bf16 (nearest_even)" or "B is A by recipe TE_BLOCK_2D to e4m3", or with A and B
/// exchanged; empty if no known rule makes all values of one from the other's. Bits are compared, but
/// every NaN is the same.
///
/// Cost: memory of about five times both tensors.
/// @param pair  two tensors that are compared
std::string rule_between(const compared_pair& pair, const executor& where);

}  // namespace fpinspect
