// Power: PyTorch 2.11's pow with a scalar exponent on CUDA tensors, and its gradient.
//
// PyTorch chooses a kernel by the exponent. Source as in activations.hpp.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary64.hpp"
#include "numerics/hardware/cuda_functions/pow.hpp"
#include "numerics/hardware/cuda_functions/rsqrt_function.hpp"
#include "numerics/hardware/torch_operators/activations.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics::torch_2_11 {

enum class power_kernel : std::uint8_t {
  constant,        ///< exponent 0: the result is 1
  copy,            ///< exponent 1
  root,            ///< exponent 1/2
  inverse_root,    ///< exponent -1/2
  reciprocal,      ///< exponent -1
  square,          ///< exponent 2 in the tensor's format
  cube,            ///< exponent 3 in the tensor's format
  inverse_square,  ///< exponent -2 in the tensor's format
  general,         ///< powf
};

/// The kernel of an exponent, and the exponent in the tensor's format as binary32 bits.
struct power {
  power_kernel kernel = power_kernel::constant;
  std::uint32_t exponent = 0;
};

/// binary64 bits rounded to binary32.
SAMEBITS_HD constexpr std::uint32_t narrow(std::uint64_t number) {
  const auto sign = static_cast<std::uint32_t>(number >> 32) & binary32::sign_bit;
  return sign | binary64::narrow(number & 0x7FFFFFFFFFFFFFFFu);
}

/// @param exponent  binary64 bits
SAMEBITS_HD constexpr power power_of(format_id format, std::uint64_t exponent) {
  const std::uint32_t rounded = stored(format, narrow(exponent));
  const auto is = [&](power_kernel kernel) { return power{kernel, rounded}; };
  if ((exponent << 1) == 0) return is(power_kernel::constant);
  if (exponent == 0x3FF0000000000000u) return is(power_kernel::copy);
  if (exponent == 0x3FE0000000000000u) return is(power_kernel::root);
  if (exponent == 0xBFE0000000000000u) return is(power_kernel::inverse_root);
  if (exponent == 0xBFF0000000000000u) return is(power_kernel::reciprocal);
  if (rounded == 0x40000000u) return is(power_kernel::square);
  if (rounded == three) return is(power_kernel::cube);
  if (rounded == 0xC0000000u) return is(power_kernel::inverse_square);
  return is(power_kernel::general);
}

/// x^exponent. Squares inside cubes and inverse squares are rounded to the tensor's format.
template <class Word>
SAMEBITS_HD constexpr Word pow(format_id format, Word x, const power& p) {
  switch (p.kernel) {
    case power_kernel::constant: return one;
    case power_kernel::copy: return x;
    case power_kernel::root: return sqrt(x);
    case power_kernel::inverse_root: return cuda_13_0::rsqrt<Word>(x);
    case power_kernel::reciprocal: return div(Word(one), x);
    case power_kernel::square: return mul(x, x);
    case power_kernel::cube: return mul(stored(format, mul(x, x)), x);
    case power_kernel::inverse_square: return div(Word(one), stored(format, mul(x, x)));
    case power_kernel::general: break;
  }
  return cuda_13_0::pow<Word>(x, Word(p.exponent));
}

/// grad * (exponent * x^(exponent - 1)), each step in the tensor's format; 0 for exponent 0.
///
/// @param exponent  binary32 bits
/// @param lower  the power of exponent - 1
template <class Word>
SAMEBITS_HD constexpr Word pow_gradient(format_id format, Word grad, Word x, std::uint32_t exponent,
                                        const power& lower) {
  if ((exponent << 1) == 0) return Word(0u);
  const Word factor = stored(format, pow(format, x, lower));
  return mul(grad, stored(format, mul(Word(exponent), factor)));
}

}  // namespace samebits::numerics::torch_2_11
