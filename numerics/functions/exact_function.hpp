// Exact function: every function of the rule `exact` (contract, section 13), with its special
// values, its gradient, and its rounding into a destination.
//
// The binary64 result y of a function f at a binary32 operand stands for f's exact value: y lies on
// the same side of every tie of the destinations, and reaches the same steps of stochastic rounding
// with up to 16 random bits. Hence rounding y once rounds the exact value once.
// docs/decisions/0046-correct-rounding.md proves this, with exact_functions_sweep.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/bits/encode.hpp"
#include "numerics/bits/word.hpp"
#include "numerics/functions/binary64_steps.hpp"
#include "numerics/functions/exact_functions.hpp"
#include "numerics/functions/exponential.hpp"
#include "numerics/functions/logarithm.hpp"
#include "numerics/functions/normal_tail.hpp"
#include "numerics/functions/sigmoid_gradients.hpp"
#include "numerics/functions/sigmoids.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics::real {

/// 1 / sqrt(x); -Inf at -0, as IEEE 754 says.
template <class Word>
SAMEBITS_INLINE constexpr Word exact_rsqrt(Word x) {
  const Word zero = std::uint64_t{0};
  const Word y = div(Word(one), sqrt(select(lt(zero, x), x, Word(one))));
  const Word outside = select(magnitude(x) == zero, with_sign(Word(inf), x), Word(nan));
  return select(lt(zero, x), y, outside);
}

template <class Word>
SAMEBITS_INLINE constexpr Word exact_reciprocal(Word x) {
  const Word zero = std::uint64_t{0};
  const Word y = div(Word(one), select(magnitude(x) == zero, Word(one), x));
  return select(magnitude(x) == zero, with_sign(Word(inf), x), y);
}

/// The function at a finite operand.
template <exact_function F, class Word>
SAMEBITS_INLINE constexpr Word finite_value(Word x) {
  if constexpr (F == exact_function::exp) return exact_exp(x);
  else if constexpr (F == exact_function::exp2) return exact_exp2(x);
  else if constexpr (F == exact_function::expm1) return exact_expm1(x);
  else if constexpr (F == exact_function::log) return exact_log(x);
  else if constexpr (F == exact_function::log2) return exact_log2(x);
  else if constexpr (F == exact_function::log1p) return exact_log1p(x);
  else if constexpr (F == exact_function::tanh) return exact_tanh(x);
  else if constexpr (F == exact_function::erf) return exact_erf(x);
  else if constexpr (F == exact_function::rsqrt) return exact_rsqrt(x);
  else if constexpr (F == exact_function::reciprocal) return exact_reciprocal(x);
  else if constexpr (F == exact_function::sigmoid) return exact_sigmoid(x);
  else if constexpr (F == exact_function::silu) return exact_silu(x);
  else if constexpr (F == exact_function::gelu) return exact_gelu(x);
  else if constexpr (F == exact_function::gelu_tanh) return exact_gelu_tanh(x);
  else if constexpr (F == exact_function::softplus) return exact_softplus(x);
  else if constexpr (F == exact_function::silu_gradient) return exact_silu_gradient(x);
  else if constexpr (F == exact_function::gelu_gradient) return exact_gelu_gradient(x);
  else return exact_gelu_tanh_gradient(x);
}

/// The binary64 result of the function at binary64 bits of a binary32 number.
template <exact_function F, class Word>
SAMEBITS_INLINE constexpr Word value_at(Word x) {
  const Word size = magnitude(x);
  const Word top = inf;
  constexpr exact_row row = exact_rows[static_cast<std::size_t>(F)];
  static_assert(row.value == F);
  const Word y = finite_value<F>(select(size < top, x, Word(one)));
  const Word finite = select(x == top, Word(row.at_inf),
                             select(x == Word(inf | sign_bit), Word(row.at_minus_inf), y));
  return select(size > top, Word(nan), finite);
}

/// The binary64 result of a function known at run time.
template <exact_function F = exact_function{}, class Word>
SAMEBITS_HD constexpr Word value_of_function(exact_function f, Word x) {
  constexpr int next = static_cast<int>(F) + 1;
  if constexpr (next < exact_function_count) {
    if (f != F) return value_of_function<static_cast<exact_function>(next)>(f, x);
  }
  return value_at<F>(x);
}

/// Calls use.operator()<F>(), F the function as a constant. For the host.
template <class Use>
constexpr auto with_function(exact_function f, const Use& use) {
  return with_enumerator<exact_function, exact_function_count>(f, use);
}

/// grad * d, exactly. `grad` has the bits of a binary32 number; d is a derivative rounded to
/// binary32. Both are binary64 bits; 48 bits hold the product.
template <class Word>
SAMEBITS_INLINE constexpr Word gradient_product(Word grad, Word d) {
  const Word top = inf;
  const Word zero = std::uint64_t{0};
  const Word size = magnitude(grad);
  const Word d_size = magnitude(d);
  const Word y = mul(select(size < top, grad, zero), select(d_size < top, d, zero));
  // The sum of two signs has the sign of the product; the carry falls off.
  const Word sign = (grad & Word(sign_bit)) + (d & Word(sign_bit));
  const Word infinite = select(d_size == zero, Word(nan), top | sign);
  return select((size > top) | (d_size > top), Word(nan), select(size == top, infinite, y));
}

/// The code of a binary64 result in the destination, rounded once.
template <class Word>
SAMEBITS_INLINE constexpr Word destination_code(const format_spec& to, const cast_rule& rule,
                                                Word y, Word dither) {
  return encode<Word>(to, rule, y, dither).code;
}

}  // namespace samebits::numerics::real
