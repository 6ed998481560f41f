// Constants: the numbers of an optimizer step that are equal for all elements of a group (contract
// §12), from hyper-parameters and the number of applied steps.
//
// Integers only: the same bits at compile time, on the host and in kernels.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/binary64.hpp"
#include "numerics/bits/word.hpp"
#include "numerics/hardware/cuda_functions/pow.hpp"
#include "numerics/update/update_arithmetic.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/loss_scaling.hpp"
#include "samebits/core/optimizer.hpp"

namespace samebits::numerics {

/// The constants of one group and step. The letters are those of contract §12. A constant that rule
/// or profile do not use may be any number.
///
/// @tparam Number  std::uint32_t: binary32 bits. std::uint64_t: binary64 bits, for profiles strict
///   and fma in binary64, where nothing is rounded to binary32.
template <class Number>
struct constants_in {
  Number grad_mul;          ///< c
  Number b1, w1;            ///< of the first average; for sgd mu and h
  Number b2, w2;            ///< of the second average
  Number rate;              ///< a
  Number root;              ///< r
  Number eps;               ///< e
  Number l2;                ///< w
  Number keep;              ///< k
  Number loss;              ///< l
  Number correction1;       ///< f(c1); for lamb f(1 / c1)
  Number correction2;       ///< f(c2)
  std::uint64_t lamb_rate;  ///< lr as binary64 bits, for lamb
  bool decays;              ///< wd is not 0
  bool first_step;          ///< t is 1
  bool nesterov;
};
using update_constants = constants_in<std::uint32_t>;

namespace update_detail {

/// Operations on binary64 and CUDA's powf as functions: inlined, they would be a megabyte of a
/// kernel's code.
struct not_inlined {
  using number = std::uint64_t;
  SAMEBITS_NOINLINE static constexpr number multiply(number a, number b) {
    return binary64::multiply(a, b);
  }
  SAMEBITS_NOINLINE static constexpr number divide(number a, number b) {
    return binary64::divide(a, b);
  }
  SAMEBITS_NOINLINE static constexpr number subtract(number a, number b) {
    return binary64::subtract(a, b);
  }
  SAMEBITS_NOINLINE static constexpr number power(number base, number exponent) {
    return binary64::power(base, exponent);
  }
  SAMEBITS_NOINLINE static constexpr number square_root(number a) {
    return binary64::square_root(a);
  }
  SAMEBITS_NOINLINE static constexpr std::uint32_t narrow(number x) { return binary64::narrow(x); }
  SAMEBITS_NOINLINE static constexpr std::uint32_t powf(std::uint32_t x, std::uint32_t y) {
    return cuda_13_0::pow<std::uint32_t>(x, y);
  }
};

/// Binary64 bits of a number >= 0; -0 becomes +0.
SAMEBITS_INLINE constexpr std::uint64_t magnitude_bits(std::uint64_t x) {
  return x & ~binary<std::uint64_t>::sign_bit;
}

/// The hyper-parameters as binary64 bits.
struct update_numbers {
  std::uint64_t lr, beta1, beta2, eps, decay;
};

SAMEBITS_INLINE constexpr update_numbers numbers_of(const optimizer_settings& s, std::uint64_t lr) {
  using samebits::detail::bits_of;
  return {magnitude_bits(lr), magnitude_bits(bits_of(s.beta1)), magnitude_bits(bits_of(s.beta2)),
          magnitude_bits(bits_of(s.eps)), magnitude_bits(bits_of(s.weight_decay))};
}

/// f(x): x rounded to binary32, or x itself.
template <class Number>
SAMEBITS_INLINE constexpr Number rounded(std::uint64_t x) {
  if constexpr (sizeof(Number) == sizeof(x)) {
    return x;
  } else {
    return not_inlined::narrow(x);
  }
}

/// f(1 - x) for x >= 0.
template <class Number>
SAMEBITS_INLINE constexpr Number one_minus(std::uint64_t x) {
  if (x <= binary64::one) return rounded<Number>(not_inlined::subtract(binary64::one, x));
  return rounded<Number>(not_inlined::subtract(x, binary64::one)) ^ binary<Number>::sign_bit;
}

/// f(1 - f(x)) for x >= 0.
template <class Number>
SAMEBITS_INLINE constexpr Number one_minus_rounded(std::uint64_t x) {
  if constexpr (sizeof(Number) == sizeof(x)) {
    return one_minus<Number>(x);
  } else {
    return binary32::add(binary32::one, negated(not_inlined::narrow(x)));
  }
}

/// f(x) as binary64 bits.
template <class Number>
SAMEBITS_INLINE constexpr std::uint64_t rounded_and_wide(std::uint64_t x) {
  return sizeof(Number) == sizeof(x) ? x : binary64::widen(not_inlined::narrow(x));
}

/// 1 - beta^t in binary64.
SAMEBITS_INLINE constexpr std::uint64_t bias_correction(std::uint64_t beta, std::uint64_t t) {
  return not_inlined::subtract(binary64::one, not_inlined::power(beta, t));
}

/// RN(1 - powf(beta, t)) with CUDA's powf, as PyTorch's fused optimizers compute it.
SAMEBITS_HD constexpr std::uint32_t fused_bias_correction(std::uint32_t beta, std::uint64_t t) {
  const std::uint32_t step = binary32::round(false, t, 0);
  const std::uint32_t power = not_inlined::powf(beta, step);
  return binary32::add(binary32::one, negated(power));
}

/// Factors of averages and decay that do not depend on the step.
template <class Number>
SAMEBITS_INLINE constexpr void set_fixed_constants(constants_in<Number>& c,
                                                   const optimizer_settings& s,
                                                   const update_numbers& x) {
  c.b1 = rounded<Number>(x.beta1);
  c.b2 = rounded<Number>(x.beta2);
  const bool of_foreach = s.profile == update_profile::torch_foreach;
  c.w1 = of_foreach ? one_minus<Number>(x.beta1) : one_minus_rounded<Number>(x.beta1);
  c.w2 = of_foreach ? one_minus<Number>(x.beta2) : one_minus_rounded<Number>(x.beta2);
  c.eps = rounded<Number>(x.eps);
  c.decays = x.decay != 0;
  c.l2 = rounded<Number>(x.decay);
  const std::uint64_t part = not_inlined::multiply(x.lr, x.decay);
  c.keep = one_minus<Number>(part);
  c.loss = rounded<Number>(part);
  if (s.profile == update_profile::torch_fused) {
    c.loss = binary32::multiply(not_inlined::narrow(x.lr), not_inlined::narrow(x.decay));
  }
}

/// The constants that depend on the step: bias corrections and step sizes of adamw, adam and lamb.
template <class Number>
SAMEBITS_HD constexpr void set_bias_corrections(constants_in<Number>& c,
                                                const optimizer_settings& s,
                                                const update_numbers& x, std::uint64_t t) {
  if (s.profile == update_profile::torch_fused) {
    const auto correction = [t](std::uint64_t beta) {
      return fused_bias_correction(not_inlined::narrow(beta), t);
    };
    c.rate = binary32::divide(not_inlined::narrow(x.lr), correction(x.beta1));
    c.root = update_by_definition::square_root(correction(x.beta2));
    return;
  }
  const bool of_foreach = s.profile == update_profile::torch_foreach;
  const auto correction = [=](std::uint64_t beta) {
    return bias_correction(of_foreach ? beta : rounded_and_wide<Number>(beta), t);
  };
  const std::uint64_t c1 = correction(x.beta1);
  const std::uint64_t c2 = correction(x.beta2);
  const std::uint64_t root = not_inlined::square_root(c2);
  c.root = rounded<Number>(root);
  c.correction1 =
      rounded<Number>(s.rule == update_rule::lamb ? not_inlined::divide(binary64::one, c1) : c1);
  c.correction2 = rounded<Number>(c2);
  c.rate = rounded<Number>(not_inlined::divide(x.lr, c1));
  if (of_foreach) c.rate ^= binary<Number>::sign_bit;
  if (s.profile == update_profile::apex_te) c.rate = rounded<Number>(x.lr);
  if (s.profile == update_profile::lightseq) {
    c.rate = rounded<Number>(not_inlined::divide(not_inlined::multiply(x.lr, root), c1));
  }
}

}  // namespace update_detail

/// The constants of a step.
///
/// @param s  checked settings
/// @param lr  the learning rate as binary64 bits, >= 0
/// @param t  applied steps, this one included; >= 1
/// @param grad_mul  the factor of gradients: bits of the format that the constants have
template <class Number>
SAMEBITS_HD constexpr constants_in<Number> constants_of(const optimizer_settings& s,
                                                        std::uint64_t lr, std::uint64_t t,
                                                        Number grad_mul) {
  using update_detail::magnitude_bits;
  const update_detail::update_numbers x = update_detail::numbers_of(s, lr);
  constants_in<Number> c = {};
  c.grad_mul = grad_mul;
  c.lamb_rate = x.lr;
  c.first_step = t == 1;
  c.nesterov = s.nesterov;
  update_detail::set_fixed_constants(c, s, x);
  if (s.rule == update_rule::sgd) {
    c.b1 = update_detail::rounded<Number>(magnitude_bits(samebits::detail::bits_of(s.momentum)));
    c.w1 = update_detail::one_minus<Number>(magnitude_bits(samebits::detail::bits_of(s.dampening)));
  }
  if (state_count(s) < 2) {
    c.rate = update_detail::rounded<Number>(x.lr);
  } else {
    update_detail::set_bias_corrections(c, s, x, t);
  }
  return c;
}

}  // namespace samebits::numerics
