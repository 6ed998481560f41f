// Activations: PyTorch 2.11's sigmoid, silu, gelu, softplus, elu, relu, leaky_relu, mish and
// hardswish on CUDA tensors, as one kernel of binary32 steps each.
//
// Source: PyTorch's kernels; which products and sums are fused follows from the machine code for
// sm_90 in the package torch 2.11.0+cu130. Tensors of 16 bits: an operand is converted to binary32,
// and the result is rounded once.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/erf.hpp"
#include "numerics/hardware/cuda_functions/exp.hpp"
#include "numerics/hardware/cuda_functions/expm1.hpp"
#include "numerics/hardware/cuda_functions/log1p.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/cuda_functions/tanh.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::torch_2_11 {

using namespace ptx;  // NOLINT(google-build-using-namespace): steps of any Word

inline constexpr std::uint32_t half = 0x3F000000u;
inline constexpr std::uint32_t one = binary32::one;
inline constexpr std::uint32_t three = 0x40400000u;
inline constexpr std::uint32_t root_half = 0x3F3504F3u;           // sqrt(1/2)
inline constexpr std::uint32_t root_two_over_pi = 0x3F4C422Au;    // sqrt(2/pi)
inline constexpr std::uint32_t gelu_cubic = 0x3D372713u;          // 0.044715
inline constexpr std::uint32_t softplus_threshold = 0x41A00000u;  // 20

/// 1 + e^-x
template <class Word>
SAMEBITS_HD constexpr Word one_plus_exp_of_minus(Word x) {
  return add(Word(one), cuda_13_0::exp<Word>(neg(x)));
}

template <class Word>
SAMEBITS_HD constexpr Word sigmoid(Word x) {
  return div(Word(one), one_plus_exp_of_minus(x));
}

template <class Word>
SAMEBITS_HD constexpr Word silu(Word x) {
  return div(x, one_plus_exp_of_minus(x));
}

template <class Word>
SAMEBITS_HD constexpr Word gelu(Word x) {
  const Word right = add(Word(one), cuda_13_0::erf<Word>(mul(x, Word(root_half))));
  return mul(mul(x, Word(half)), right);
}

/// tanh(sqrt(2/pi) (x + 0.044715 x^3))
template <class Word>
SAMEBITS_HD constexpr Word tanh_of_gelu(Word x) {
  const Word cube = mul(mul(x, x), x);
  const Word inner = mul(fma(Word(gelu_cubic), cube, x), Word(root_two_over_pi));
  return cuda_13_0::tanh<Word>(inner);
}

template <class Word>
SAMEBITS_HD constexpr Word gelu_tanh(Word x) {
  return mul(mul(Word(half), x), add(Word(one), tanh_of_gelu(x)));
}

template <class Word>
SAMEBITS_HD constexpr Word softplus(Word x) {
  const Word logarithm = cuda_13_0::log1p<Word>(cuda_13_0::exp<Word>(x));
  return select(lt(Word(softplus_threshold), x), x, logarithm);
}

template <class Word>
SAMEBITS_HD constexpr Word elu(Word x, std::uint32_t alpha) {
  const Word below = mul(cuda_13_0::expm1<Word>(x), Word(alpha));
  return select(lt(Word(0u), x), x, below);
}

/// NaN stays NaN; -0 gives +0.
template <class Word>
SAMEBITS_HD constexpr Word relu(Word x) {
  return select(lt(Word(0u), x) | is_nan(x), x, Word(0u));
}

template <class Word>
SAMEBITS_HD constexpr Word leaky_relu(Word x, std::uint32_t slope) {
  return select(lt(Word(0u), x), x, mul(x, Word(slope)));
}

template <class Word>
SAMEBITS_HD constexpr Word tanh_of_softplus(Word x) {
  return cuda_13_0::tanh<Word>(cuda_13_0::log1p<Word>(cuda_13_0::exp<Word>(x)));
}

template <class Word>
SAMEBITS_HD constexpr Word mish(Word x) {
  return mul(x, tanh_of_softplus(x));
}

template <class Word>
SAMEBITS_HD constexpr Word hardswish(Word x) {
  constexpr std::uint32_t six = 0x40C00000u;
  const Word moved = add(x, Word(three));
  const Word lower = select(lt(moved, Word(0u)), Word(0u), moved);
  const Word clamped = select(lt(Word(six), lower), Word(six), lower);
  return mul(mul(x, clamped), Word(0x3E2AAAAB));  // 1/6
}

}  // namespace samebits::numerics::torch_2_11
