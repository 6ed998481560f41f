// Arithmetic: all operations on codes behind one function, compute().
#pragma once

#include <cstdint>

#include "numerics/arithmetic/add.hpp"
#include "numerics/arithmetic/compare.hpp"
#include "numerics/arithmetic/divide.hpp"
#include "numerics/arithmetic/integral.hpp"
#include "numerics/arithmetic/multiply.hpp"
#include "numerics/arithmetic/square_root.hpp"
#include "numerics/bits/number.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/operation.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

/// An operand: a code and its format. The format must support arithmetic (has_arithmetic()).
struct input {
  format_spec format;
  std::uint64_t code;
};

/// Computes the exact result of an operation and rounds it once into `to`. Unused operands are not
/// read.
/// @param dither  the K random bits at the top of the word; used by stochastic rounding only
template <operation Op>
SAMEBITS_INLINE constexpr outcome compute(const input& a, const input& b, const input& c,
                                          const format_spec& to, const cast_rule& rule,
                                          std::uint64_t dither) {
  if constexpr (Op == operation::add) {
    return add(a.format, a.code, b.format, b.code, to, rule, dither);
  } else if constexpr (Op == operation::sub) {
    return add(a.format, a.code, b.format, b.code, to, rule, dither, term_sign::flipped);
  } else if constexpr (Op == operation::mul) {
    return multiply(a.format, a.code, b.format, b.code, to, rule, dither);
  } else if constexpr (Op == operation::div) {
    return divide(a.format, a.code, b.format, b.code, to, rule, dither);
  } else if constexpr (Op == operation::sqrt) {
    return square_root(a.format, a.code, to, rule, dither);
  } else if constexpr (Op == operation::fma) {
    return fused_multiply_add(a.format, a.code, b.format, b.code, c.format, c.code, to, rule,
                              dither);
  } else if constexpr (Op == operation::rem) {
    return remainder(a.format, a.code, b.format, b.code, to, rule, dither);
  } else if constexpr (Op == operation::rint) {
    return round_to_integral(a.format, a.code, to, rule, dither);
  } else {
    constexpr bool minimum = Op == operation::min || Op == operation::min_num;
    constexpr bool win = Op == operation::min || Op == operation::max;
    return choose(a.format, a.code, b.format, b.code, to, rule, dither,
                  minimum ? extremum::minimum : extremum::maximum,
                  win ? nan_operands::win : nan_operands::lose);
  }
}

/// compute() for an operation known only at run time.
SAMEBITS_INLINE constexpr outcome compute(operation op, const input& a, const input& b,
                                          const input& c, const format_spec& to,
                                          const cast_rule& rule, std::uint64_t dither) {
  switch (op) {
    case operation::add: return compute<operation::add>(a, b, c, to, rule, dither);
    case operation::sub: return compute<operation::sub>(a, b, c, to, rule, dither);
    case operation::mul: return compute<operation::mul>(a, b, c, to, rule, dither);
    case operation::div: return compute<operation::div>(a, b, c, to, rule, dither);
    case operation::sqrt: return compute<operation::sqrt>(a, b, c, to, rule, dither);
    case operation::fma: return compute<operation::fma>(a, b, c, to, rule, dither);
    case operation::rem: return compute<operation::rem>(a, b, c, to, rule, dither);
    case operation::rint: return compute<operation::rint>(a, b, c, to, rule, dither);
    case operation::min: return compute<operation::min>(a, b, c, to, rule, dither);
    case operation::max: return compute<operation::max>(a, b, c, to, rule, dither);
    case operation::min_num: return compute<operation::min_num>(a, b, c, to, rule, dither);
    case operation::max_num: return compute<operation::max_num>(a, b, c, to, rule, dither);
  }
  return {};
}

}  // namespace samebits::numerics
