// The Arithmetic policy of optimizer steps, in integers, and the element that a step updates.
//
// Rules in this folder take a policy as `class Arithmetic`. Its functions are those of
// numerics/arithmetic/by_definition.hpp (product, quotient, sum) and:
//
//   fused(a, b, c)   RN(a * b + c)
//   square_root(a)   RN(sqrt(a))
//   canonical(x)     x, or the canonical NaN if x is a NaN
//
// Steps between a step's inputs and results may return any NaN; canonical() makes the results
// canonical.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/by_definition.hpp"
#include "numerics/arithmetic/multiply.hpp"
#include "numerics/arithmetic/square_root.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

/// The Arithmetic policy of optimizer steps by definition.
struct update_by_definition : by_definition {
  SAMEBITS_HD static constexpr std::uint32_t fused(std::uint32_t a, std::uint32_t b,
                                                   std::uint32_t c) {
    const format_spec f = spec_of(format_id::fp32);
    return static_cast<std::uint32_t>(fused_multiply_add(f, a, f, b, f, c, f, cast_rule{}, 0).code);
  }
  SAMEBITS_HD static constexpr std::uint32_t square_root(std::uint32_t a) {
    const format_spec f = spec_of(format_id::fp32);
    return static_cast<std::uint32_t>(numerics::square_root(f, a, f, cast_rule{}, 0).code);
  }
  SAMEBITS_INLINE static constexpr std::uint32_t canonical(std::uint32_t x) {
    return binary32::is_nan(x) ? binary32::nan : x;
  }
};

/// x with the other sign. The carry of the sum is lost.
template <class Word>
SAMEBITS_INLINE constexpr Word negated(Word x) {
  return x + Word(binary<element_of<Word>>::sign_bit);
}

/// One element of a step, as bits. `Word` is std::uint32_t, SIMD lanes, or std::uint64_t for a step
/// in binary64.
template <class Word>
struct update_element {
  Word weight;
  Word gradient;  ///< a rule gets the gradient's value times grad_mul; update.hpp multiplies
  Word first;     ///< m; unused by rules without states
  Word second;    ///< v; unused by rules with one state
};

/// Leaves a value as it is: what profiles without roundings to 16 bits use in their place.
struct not_rounded {
  template <class Word>
  SAMEBITS_INLINE constexpr Word operator()(Word x) const {
    return x;
  }
};

}  // namespace samebits::numerics
