// Hardware: Arithmetic policies (numerics/arithmetic/by_definition.hpp) by the processor's binary32
// instructions on SIMD lanes. convert_kernel.hpp says what code may be used here.
//
// The control register must have its IEEE 754 state.
#pragma once

#include "backends/simd/lanes/access.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/word.hpp"
#include "numerics/hardware/function_units/rcp.hpp"
#include "samebits/core/config.hpp"

namespace samebits::simd {

/// Product and quotient of operands that are positive or the NaN 7FFFFFFF. Both operations pass on
/// this NaN.
template <class Isa>
struct hardware {
  using word = typename Isa::word;
  SAMEBITS_INLINE static word product(word a, word b) { return Isa::multiply(a, b); }
  SAMEBITS_INLINE static word quotient(word a, word b) { return Isa::divide(a, b); }
  /// 1 / x by a Hopper GPU's function unit, one lane after another.
  SAMEBITS_INLINE static word reciprocal_by_unit(word x) {
    std::uint32_t all[word::count];
    store<Isa>(all, x);
    for (std::uint32_t& one : all) one = numerics::hopper::rcp_approx_ftz(one);
    return load<Isa>(all);
  }
};

/// Product and sum of any operands. Every NaN result is the canonical NaN.
template <class Isa>
struct canonical_hardware {
  using word = typename Isa::word;
  SAMEBITS_INLINE static word product(word a, word b) { return canonical(Isa::multiply(a, b)); }
  SAMEBITS_INLINE static word sum(word a, word b) { return canonical(Isa::add(a, b)); }

 private:
  SAMEBITS_INLINE static word canonical(word x) {
    const word nan = numerics::binary32::nan;
    return select((x & nan) > word(numerics::binary32::inf), nan, x);
  }
};

}  // namespace samebits::simd
