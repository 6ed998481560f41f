// Definition values: functions of the rule `exact` by the definition's binary64 steps, as a call.
#pragma once

#include <cstdint>

#include "backends/cuda/functions/exact/real_word.cuh"
#include "numerics/functions/exact_function.hpp"

namespace samebits::cuda {

/// The binary64 result of the definition. Not inline: it is the rare path of kernels with an
/// approximation, which need the registers.
template <numerics::real::exact_function F>
__device__ __noinline__ std::uint64_t definition_value(float x) {
  return numerics::real::value_at<F>(real_word(static_cast<double>(x))).bits;
}

}  // namespace samebits::cuda
