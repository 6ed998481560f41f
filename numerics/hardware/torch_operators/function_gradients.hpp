// Function gradients: PyTorch 2.11's backward formulas of exp, log, erf and others on CUDA tensors.
//
// Each product, sum and quotient is a kernel of its own, so each is rounded to the tensor's format.
// Arguments as in activation_gradients.hpp. Source: derivatives.yaml of PyTorch.
#pragma once

#include <cstdint>

#include "numerics/hardware/torch_operators/activations.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics::torch_2_11 {

inline constexpr std::uint32_t log_of_two = 0x3F317218u;

template <class Word>
SAMEBITS_HD constexpr Word exp2_gradient(format_id format, Word grad, Word y) {
  return mul(stored(format, mul(grad, y)), Word(log_of_two));
}

template <class Word>
SAMEBITS_HD constexpr Word expm1_gradient(format_id format, Word grad, Word y) {
  return mul(grad, stored(format, add(y, Word(one))));
}

template <class Word>
SAMEBITS_HD constexpr Word log2_gradient(format_id format, Word grad, Word x) {
  return div(grad, stored(format, mul(x, Word(log_of_two))));
}

template <class Word>
SAMEBITS_HD constexpr Word log1p_gradient(format_id format, Word grad, Word x) {
  return div(grad, stored(format, add(x, Word(one))));
}

template <class Word>
SAMEBITS_HD constexpr Word erf_gradient(format_id format, Word grad, Word x) {
  constexpr std::uint32_t two_over_root_pi = 0x3F906EBBu;
  const Word square = stored(format, mul(x, x));
  const Word power = stored(format, cuda_13_0::exp<Word>(neg(square)));
  return mul(stored(format, mul(Word(two_over_root_pi), power)), grad);
}

template <class Word>
SAMEBITS_HD constexpr Word rsqrt_gradient(format_id format, Word grad, Word y) {
  const Word cube = stored(format, mul(stored(format, mul(y, y)), y));
  const Word left = stored(format, mul(Word(0xBF000000), grad));  // -1/2
  return mul(left, cube);
}

template <class Word>
SAMEBITS_HD constexpr Word reciprocal_gradient(format_id format, Word grad, Word y) {
  return mul(neg(grad), stored(format, mul(y, y)));
}

}  // namespace samebits::numerics::torch_2_11
