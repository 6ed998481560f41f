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

/// The constants of one group and step, as binary32 bits. The letters are those of contract §12. A
/// constant that rule or profile do not use may be any number.
struct update_constants {
  std::uint32_t grad_mul;     ///< c
  std::uint32_t b1, w1;       ///< of the first average; for sgd mu and h
  std::uint32_t b2, w2;       ///< of the second average
  std::uint32_t rate;         ///< a
  std::uint32_t root;         ///< r
  std::uint32_t epsilon;      ///< e
  std::uint32_t l2;           ///< w
  std::uint32_t keep;         ///< k
  std::uint32_t loss;         ///< l
  std::uint32_t correction1;  ///< f(c1); for lamb f(1 / c1)
  std::uint32_t correction2;  ///< f(c2)
  std::uint64_t lamb_rate;    ///< lr as binary64 bits, for lamb
  bool decays;                ///< wd is not 0
  bool first_step;            ///< t is 1
  bool nesterov;
};

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
  std::uint64_t lr, beta1, beta2, epsilon, decay;
};

SAMEBITS_INLINE constexpr update_numbers numbers_of(const optimizer_settings& s, std::uint64_t lr) {
  using samebits::detail::bits_of;
  return {magnitude_bits(lr), magnitude_bits(bits_of(s.beta1)), magnitude_bits(bits_of(s.beta2)),
          magnitude_bits(bits_of(s.epsilon)), magnitude_bits(bits_of(s.weight_decay))};
}

/// f(1 - x) for x >= 0.
SAMEBITS_INLINE constexpr std::uint32_t one_minus(std::uint64_t x) {
  if (x <= binary64::one) return not_inlined::narrow(not_inlined::subtract(binary64::one, x));
  return negated(not_inlined::narrow(not_inlined::subtract(x, binary64::one)));
}

/// A hyper-parameter rounded to binary32, as binary64 bits.
SAMEBITS_INLINE constexpr std::uint64_t rounded_to_binary32(std::uint64_t x) {
  return binary64::widen(not_inlined::narrow(x));
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
SAMEBITS_INLINE constexpr void set_fixed_constants(update_constants& c, const optimizer_settings& s,
                                                   const update_numbers& x) {
  c.b1 = not_inlined::narrow(x.beta1);
  c.b2 = not_inlined::narrow(x.beta2);
  const bool of_foreach = s.profile == update_profile::torch_foreach;
  c.w1 = of_foreach ? one_minus(x.beta1) : binary32::add(binary32::one, negated(c.b1));
  c.w2 = of_foreach ? one_minus(x.beta2) : binary32::add(binary32::one, negated(c.b2));
  c.epsilon = not_inlined::narrow(x.epsilon);
  c.decays = x.decay != 0;
  c.l2 = not_inlined::narrow(x.decay);
  const std::uint64_t part = not_inlined::multiply(x.lr, x.decay);
  c.keep = one_minus(part);
  c.loss = s.profile == update_profile::torch_fused
               ? binary32::multiply(not_inlined::narrow(x.lr), c.l2)
               : not_inlined::narrow(part);
}

/// The constants that depend on the step: bias corrections and step sizes of adamw, adam and lamb.
SAMEBITS_HD constexpr void set_bias_corrections(update_constants& c, const optimizer_settings& s,
                                                const update_numbers& x, std::uint64_t t) {
  if (s.profile == update_profile::torch_fused) {
    c.rate = binary32::divide(not_inlined::narrow(x.lr), fused_bias_correction(c.b1, t));
    c.root = update_by_definition::square_root(fused_bias_correction(c.b2, t));
    return;
  }
  const bool of_foreach = s.profile == update_profile::torch_foreach;
  const std::uint64_t c1 = bias_correction(of_foreach ? x.beta1 : rounded_to_binary32(x.beta1), t);
  const std::uint64_t c2 = bias_correction(of_foreach ? x.beta2 : rounded_to_binary32(x.beta2), t);
  const std::uint64_t root = not_inlined::square_root(c2);
  c.root = not_inlined::narrow(root);
  c.correction1 = not_inlined::narrow(
      s.rule == update_rule::lamb ? not_inlined::divide(binary64::one, c1) : c1);
  c.correction2 = not_inlined::narrow(c2);
  c.rate = not_inlined::narrow(not_inlined::divide(x.lr, c1));
  if (of_foreach) c.rate = negated(c.rate);
  if (s.profile == update_profile::apex_te) c.rate = not_inlined::narrow(x.lr);
  if (s.profile == update_profile::lightseq) {
    c.rate = not_inlined::narrow(not_inlined::divide(not_inlined::multiply(x.lr, root), c1));
  }
}

}  // namespace update_detail

/// The constants of a step.
///
/// @param s  checked settings
/// @param lr  the learning rate as binary64 bits, >= 0
/// @param t  applied steps, this one included; >= 1
/// @param grad_mul  the factor of gradients, binary32 bits
SAMEBITS_HD constexpr update_constants constants_of(const optimizer_settings& s, std::uint64_t lr,
                                                    std::uint64_t t, std::uint32_t grad_mul) {
  const update_detail::update_numbers x = update_detail::numbers_of(s, lr);
  update_constants c = {};
  c.grad_mul = grad_mul;
  c.lamb_rate = x.lr;
  c.first_step = t == 1;
  c.nesterov = s.nesterov;
  update_detail::set_fixed_constants(c, s, x);
  if (s.rule == update_rule::sgd) {
    c.b1 = update_detail::not_inlined::narrow(
        update_detail::magnitude_bits(samebits::detail::bits_of(s.momentum)));
    c.w1 = update_detail::one_minus(
        update_detail::magnitude_bits(samebits::detail::bits_of(s.dampening)));
  }
  if (state_count(s) < 2) {
    c.rate = update_detail::not_inlined::narrow(x.lr);
  } else {
    update_detail::set_bias_corrections(c, s, x, t);
  }
  return c;
}

}  // namespace samebits::numerics
