// Activation gradients: the backward kernels of PyTorch 2.11's activations on CUDA tensors.
//
// `grad` is the gradient of the output, `x` the operator's input, `y` its output; all are binary32
// bits of numbers in the tensor's format. Results are rounded to the format by the caller.
// activations.hpp names the source.
#pragma once

#include <cstdint>

#include "numerics/hardware/torch_operators/activations.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics::torch_2_11 {

/// grad (1 - y) y, every step in the tensor's format.
template <class Word>
SAMEBITS_HD constexpr Word sigmoid_gradient(format_id format, Word grad, Word y) {
  const Word rest = stored(format, sub(Word(one), y));
  return mul(stored(format, mul(grad, rest)), y);
}

/// grad (1 - y^2); in 16 bits, every step in the tensor's format.
template <class Word>
SAMEBITS_HD constexpr Word tanh_gradient(format_id format, Word grad, Word y) {
  if (format == format_id::fp32) return mul(grad, fma(neg(y), y, Word(one)));
  const Word rest = stored(format, sub(Word(one), stored(format, mul(y, y))));
  return mul(grad, rest);
}

template <class Word>
SAMEBITS_HD constexpr Word silu_gradient(Word grad, Word x) {
  const Word s = sigmoid(x);
  return mul(mul(grad, s), fma(x, sub(Word(one), s), Word(one)));
}

template <class Word>
SAMEBITS_HD constexpr Word gelu_gradient(Word grad, Word x) {
  constexpr std::uint32_t density = 0x3ECC422Au;  // 1 / sqrt(2 pi)
  const Word right = add(Word(one), cuda_13_0::erf<Word>(mul(x, Word(root_half))));
  const Word exponent = mul(mul(Word(0xBF000000), x), x);  // -1/2 x^2
  const Word pdf = mul(cuda_13_0::exp<Word>(exponent), Word(density));
  return mul(grad, fma(Word(half), right, mul(x, pdf)));
}

template <class Word>
SAMEBITS_HD constexpr Word gelu_tanh_gradient(Word grad, Word x) {
  constexpr std::uint32_t cubic_times_three = 0x3E095D4Eu;
  const Word t = tanh_of_gelu(x);
  const Word left = mul(Word(half), x);
  const Word tanh_slope = fma(neg(t), t, Word(one));
  const Word inner = fma(Word(cubic_times_three), mul(x, x), Word(one));
  const Word inner_slope = mul(Word(root_two_over_pi), inner);
  const Word right = mul(mul(left, tanh_slope), inner_slope);
  return mul(grad, fma(Word(half), add(Word(one), t), right));
}

template <class Word>
SAMEBITS_HD constexpr Word softplus_gradient(Word grad, Word x) {
  const Word z = cuda_13_0::exp<Word>(x);
  const Word below = div(mul(grad, z), add(z, Word(one)));
  return select(lt(Word(softplus_threshold), x), grad, below);
}

template <class Word>
SAMEBITS_HD constexpr Word elu_gradient(Word grad, Word x, std::uint32_t alpha) {
  const Word below = mul(mul(grad, Word(alpha)), cuda_13_0::exp<Word>(x));
  return select(lt(Word(0u), x) | is_nan(x), grad, below);
}

template <class Word>
SAMEBITS_HD constexpr Word relu_gradient(Word grad, Word y) {
  return select(lt(Word(0u), y) | is_nan(y), grad, Word(0u));
}

template <class Word>
SAMEBITS_HD constexpr Word leaky_relu_gradient(Word grad, Word x, std::uint32_t slope) {
  return select(lt(Word(0u), x), grad, mul(grad, Word(slope)));
}

template <class Word>
SAMEBITS_HD constexpr Word mish_gradient(Word grad, Word x) {
  const Word t = tanh_of_softplus(x);
  const Word slope = fma(neg(t), t, Word(one));
  return mul(grad, fma(mul(x, sigmoid(x)), slope, t));
}

/// 0 up to -3, grad (x / 3 + 1/2) below 3, grad from 3 on and for NaN.
template <class Word>
SAMEBITS_HD constexpr Word hardswish_gradient(Word grad, Word x) {
  const Word between = mul(grad, add(div(x, Word(three)), Word(half)));
  const Word result = select(lt(x, Word(three)), between, grad);
  constexpr std::uint32_t minus_three = 0xC0400000u;
  const mask_of<Word> below = lt(x, Word(minus_three)) | (x == Word(minus_three));
  return select(below, Word(0u), result);
}

}  // namespace samebits::numerics::torch_2_11
