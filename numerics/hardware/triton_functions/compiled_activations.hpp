// Compiled activations: gelu, silu and sigmoid as torch.compile of PyTorch 2.11 computes them on
// CUDA tensors, with Triton 3.6 on sm_90 and the default settings.
//
// Source: Inductor's lowerings, and the PTX and machine code of such Triton kernels. Tensors of 16
// bits: an operand is converted to binary32, and the result is rounded once.
#pragma once

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/exp.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/torch_operators/activations.hpp"
#include "numerics/hardware/triton_functions/full_divide.hpp"
#include "numerics/hardware/triton_functions/triton_functions.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::torch_compile_2_11 {

using namespace ptx;  // NOLINT(google-build-using-namespace): steps of any Word

/// x / (exp(-x) + 1): the last product of exp and the sum are one fma.
template <class Word>
SAMEBITS_HD constexpr Word silu(Word x) {
  const auto factors = cuda_13_0::exp_factors_of<Word>(neg(x));
  const Word divisor = fma(factors.power, factors.scale, Word(binary32::one));
  return triton_3_6::full_divide<Word>(x, divisor);
}

/// Eager gelu with the erf of Triton's libdevice.
template <class Word>
SAMEBITS_HD constexpr Word gelu(Word x) {
  const Word inner = mul(x, Word(torch_2_11::root_half));
  const Word right = add(triton_3_6::erf_with_subnormals<Word>(inner), Word(binary32::one));
  return mul(mul(x, Word(torch_2_11::half)), right);
}

/// The steps of eager gelu.
template <class Word>
SAMEBITS_HD constexpr Word gelu_tanh(Word x) {
  return torch_2_11::gelu_tanh(x);
}

template <class Word>
SAMEBITS_HD constexpr Word sigmoid(Word x) {
  return triton_3_6::sigmoid<Word>(x);
}

}  // namespace samebits::numerics::torch_compile_2_11
